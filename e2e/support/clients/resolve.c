/* Looks names up with the C library's getaddrinfo: one line for each, with its addresses. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

int main(int count, char **names) {
  for (int i = 1; i < count; i++) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = getaddrinfo(names[i], NULL, &hints, &found);
    printf("%s", names[i]);
    if (error == EAI_NONAME) printf(" not found");
    else if (error != 0) printf(" %s", gai_strerror(error));
    for (struct addrinfo *each = found; each != NULL; each = each->ai_next) {
      char host[NI_MAXHOST] = "";
      getnameinfo(each->ai_addr, each->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST);
      printf(" %s", host);
    }
    printf("\n");
  }
}
