import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/** Asks each address of its arguments with java.net.http; a line for each answer: status, protocol, body in base64. */
public class Get {
  public static void main(String[] urls) throws InterruptedException {
    HttpClient client = HttpClient.newHttpClient();
    for (String url : urls) {
      HttpRequest request = HttpRequest.newBuilder(URI.create(url)).header("authorization", "token agents-own").build();
      try {
        HttpResponse<byte[]> answer = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
        print(String.valueOf(answer.statusCode()), answer.version().name(), answer.body());
      } catch (IOException error) {
        print("error", error.getClass().getName(), String.valueOf(error.getMessage()).getBytes(StandardCharsets.UTF_8));
      }
    }
  }

  private static void print(String status, String protocol, byte[] body) {
    System.out.println(status + " " + protocol + " " + Base64.getEncoder().encodeToString(body));
  }
}
