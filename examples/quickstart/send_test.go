package main

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

const (
	body = "ok\n" // of an answer when all is well

	contentType    = "text/plain; charset=utf-8"
	contentJSON    = "application/json"
	contentProblem = "application/problem+json"

	apiKeyHeader    = "X-Api-Key"
	orderHeader     = "X-Order"
	keyHeader       = "Idempotency-Key"
	buyerHeader     = "X-Buyer"
	signatureHeader = "X-Demo-Signature"

	flashUnits = 100
)

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   string
}

// clients has a client for each server. Closing idle connections may also close one whose
// answer, without a body, is about to be told.
var clients sync.Map

func clientOf(address string) *http.Client {
	c, _ := clients.LoadOrStore(address, &http.Client{Transport: &http.Transport{}})
	return c.(*http.Client)
}

// must sends a request that has to be answered.
func must(t *testing.T, method, url, body string, header http.Header) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	response, err := clientOf(r.URL.Host).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(text)}
}

// ask sends a request with the values of the API key header.
func ask(t *testing.T, method, url string, keys ...string) reply {
	t.Helper()
	return must(t, method, url, "", http.Header{apiKeyHeader: keys})
}
