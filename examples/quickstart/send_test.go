package main

import (
	"context"
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

	inflight   = 2
	flashUnits = 100
)

// reply is an answer; its status is 0 when there was none.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request by a client of net/http.
func send(ctx context.Context, by *http.Client, method, url, body string, header http.Header) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header = header
	response, err := by.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, err
	}
	return reply{response.StatusCode, response.Header, string(text)}, nil
}

// must sends a request that has to be answered.
func must(t *testing.T, by *http.Client, method, url, body string, header http.Header) reply {
	t.Helper()
	a, err := send(t.Context(), by, method, url, body, header)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// fresh makes a connection for each request: one that was made beforehand and is
// not used would hold up a server that is to stop.
var fresh = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// kept has connections of its own: each httptest.Server that ends closes those of
// http.DefaultClient, also for a request that is about to be sent.
var kept = &http.Client{Transport: &http.Transport{}}

// ask sends a request with the values of the API key header.
func ask(t *testing.T, method, url string, keys ...string) reply {
	t.Helper()
	return must(t, kept, method, url, "", http.Header{apiKeyHeader: keys})
}

// hold sends one that may end without an answer.
func hold(ctx context.Context, url string) int {
	a, _ := send(ctx, kept, http.MethodGet, url, "", http.Header{})
	return a.status
}

// post is for an order, or several; it may end without an answer.
func post(ctx context.Context, url string, orders ...string) reply {
	a, _ := send(ctx, kept, http.MethodPost, url, "", http.Header{orderHeader: orders})
	return a
}

// purchase asks for an item as these buyers; it may end without an answer.
func purchase(ctx context.Context, url string, buyers ...string) reply {
	a, _ := send(ctx, fresh, http.MethodPost, url, "", http.Header{buyerHeader: buyers})
	return a
}

// place sends an order; "" is a header field that it lacks.
func place(t *testing.T, url, client, key, order string) reply {
	t.Helper()
	header := http.Header{"Content-Type": {contentJSON}}
	for name, value := range map[string]string{apiKeyHeader: client, keyHeader: key} {
		if value != "" {
			header.Set(name, value)
		}
	}
	return must(t, kept, http.MethodPost, url, order, header)
}

// tell sends an event as a provider does.
func tell(t *testing.T, url, event string, signatures ...string) reply {
	t.Helper()
	return must(t, fresh, http.MethodPost, url, event, http.Header{signatureHeader: signatures})
}
