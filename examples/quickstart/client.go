package main

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// client sends requests to one host, each bounded in time.
type client struct {
	url  string
	http *http.Client
}

func newClient(url string) *client {
	return &client{url: url, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 32},
		Timeout:   30 * time.Second,
	}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// answer is a response. The server decided between sent and received.
type answer struct {
	status         int
	header         http.Header
	body           string
	sent, received time.Time
}

// get sends one request, with the values of the API key header.
func (c *client) get(ctx context.Context, target string, keys ...string) (answer, error) {
	return c.send(ctx, http.MethodGet, target, "", http.Header{apiKeyHeader: keys})
}

// post sends one request for an order.
func (c *client) post(ctx context.Context, target, order string) (answer, error) {
	return c.send(ctx, http.MethodPost, target, "", http.Header{orderHeader: {order}})
}

// order places one, under a key.
func (c *client) order(ctx context.Context, target, key, body string) (answer, error) {
	return c.send(ctx, http.MethodPost, target, body, http.Header{
		apiKeyHeader: {"alice"}, keyHeader: {key}, "Content-Type": {contentJSON},
	})
}

func (c *client) send(ctx context.Context, method, target, body string, header http.Header) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+target, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header = header
	sent := time.Now()
	response, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{response.StatusCode, response.Header, string(text), sent, time.Now()}, nil
}

// row sends n requests one after the other.
func (c *client) row(ctx context.Context, n int, target string, keys ...string) ([]answer, error) {
	answers := make([]answer, n)
	for i := range answers {
		var err error
		if answers[i], err = c.get(ctx, target, keys...); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// atOnce is how many requests a volley has.
const atOnce = 20

// volley sends requests at once, and orders the answers by their status.
func (c *client) volley(ctx context.Context, target string) ([]answer, error) {
	return together(func() (answer, error) { return c.get(ctx, target) })
}

func together(send func() (answer, error)) ([]answer, error) {
	answers := make([]answer, atOnce)
	errs := make([]error, atOnce)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			<-start
			answers[i], errs[i] = send()
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(answers, func(a, b answer) int { return a.status - b.status })
	return answers, nil
}

// count is how many of the answers have the status.
func count(answers []answer, status int) int {
	n := 0
	for _, a := range answers {
		if a.status == status {
			n++
		}
	}
	return n
}
