package main

import (
	"io"
	"net/http"
	"strings"
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

// kept has connections of its own: each httptest.Server that ends closes those of
// http.DefaultClient, also for a request that is about to be sent.
var kept = &http.Client{Transport: &http.Transport{}}

// must sends a request that has to be answered.
func must(t *testing.T, method, url, body string, header http.Header) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	response, err := kept.Do(r)
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
