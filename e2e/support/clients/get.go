// Asks each address of its arguments with net/http; one line of JSON for each answer.
package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
)

type answer struct {
	Status   int    `json:"status,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Body     string `json:"body,omitempty"`
	Error    string `json:"error,omitempty"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, url := range os.Args[1:] {
		out.Encode(get(url))
	}
}

func get(url string) answer {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return answer{Error: err.Error()}
	}
	request.Header.Set("Authorization", "token agents-own")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{Error: err.Error()}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Status: response.StatusCode, Protocol: response.Proto, Body: string(body)}
}
