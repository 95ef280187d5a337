// Looks names up with Go's own resolver: one line for each, with its addresses.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

func main() {
	for _, name := range os.Args[1:] {
		addresses, err := net.DefaultResolver.LookupHost(context.Background(), name)
		var failure *net.DNSError
		switch {
		case errors.As(err, &failure) && failure.IsNotFound:
			fmt.Println(name, "not found")
		case err != nil:
			fmt.Println(name, err)
		default:
			fmt.Println(name, strings.Join(addresses, " "))
		}
	}
}
