package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestThePageOfTheCORSRecipe runs what docs/neighbours.md gives to a page on another origin: it keeps its key when it tries again, waits
// as it is told, and does not wait for a month.
func TestThePageOfTheCORSRecipe(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(root + "/examples/neighbours/cors.js")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var keys []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
		w.Header().Set("Access-Control-Allow-Headers", "Content-Type, Idempotency-Key")
		if r.Method == http.MethodOptions {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		statuses := []int{0, http.StatusServiceUnavailable, http.StatusConflict, http.StatusCreated}
		status := http.StatusTooManyRequests
		if r.URL.Path == "/orders" {
			status = statuses[len(keys)-1]
		}
		switch status {
		case 0:
			panic(http.ErrAbortHandler) // the network fails
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "2500000")
		case http.StatusServiceUnavailable, http.StatusConflict:
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(api.Close)
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><script>let url = '" + api.URL + "/orders';\n" + string(script) + "</script>"))
	}))
	t.Cleanup(home.Close)
	b, leave, err := start(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leave)
	p := &page{browser: b, t: t, url: home.URL}
	p.must(p.do(chromedp.Navigate(home.URL)))
	p.is(`(() => { place({}).then((answer) => { window.placed = answer.status; }); })()`)
	p.must(p.await(`window.placed === 201`, soon))
	mu.Lock()
	if len(keys) != 4 || keys[0] == "" || len(slices.Compact(slices.Clone(keys))) != 1 {
		t.Errorf("got the keys %q, want one four times", keys)
	}
	mu.Unlock()
	p.is(`(() => { url = '` + api.URL + `/quota'; place({}).then((answer) => { window.refused = answer.status; }); })()`)
	p.must(p.await(`window.refused === 429`, soon))
	mu.Lock()
	defer mu.Unlock()
	if len(keys) != 5 || keys[4] == keys[0] {
		t.Errorf("got the keys %q, want another order with one of its own, once", keys)
	}
}
