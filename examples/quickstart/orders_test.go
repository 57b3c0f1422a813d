package main

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// orderOf fails the test unless the answer is that to an order, given for the
// first time or again.
func orderOf(t *testing.T, a reply, want string, again bool) (id string) {
	t.Helper()
	var booked struct {
		ID    string
		Order json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.body), &booked); err != nil {
		t.Error(err)
	}
	if a.status != 201 || booked.ID == "" || string(booked.Order) != want ||
		a.header.Get("Content-Type") != contentJSON ||
		a.header.Get("Location") != "/orders/"+booked.ID ||
		again != (a.header.Get("Idempotent-Replayed") == "true") || again != (a.header.Get("Set-Cookie") == "") {
		t.Errorf("got %d %v %s, want 201 and the order %s, given again: %t", a.status, a.header, a.body, want, again)
	}
	return booked.ID
}

const (
	tea    = `{"item":"tea"}`
	coffee = `{"item":"coffee"}`
)

func TestOrdersOnEveryFramework(t *testing.T) {
	t.Parallel()
	for _, f := range frameworks {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			url := serving(t, "-framework", f.Name, "-budget", patient) + "/orders"
			for _, bad := range []struct {
				query, client, key, order string
				status                    int
			}{
				{"", "me", "", tea, 400},
				{"", "me", strings.Repeat("k", 256), tea, 400},
				{"", "me", "a,b", tea, 400},
				{"", "", "1", tea, 401},
				{"?ms=x", "me", "1", tea, 400},
				{"?ms=10001", "me", "1", tea, 400},
			} {
				a := place(t, url+bad.query, bad.client, bad.key, bad.order)
				if a.status != bad.status || a.header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("%+v: got %d %v, want %d and a problem", bad, a.status, a.header, bad.status)
				}
			}
			if got := ask(t, http.MethodGet, url).status; got != 405 {
				t.Errorf("got %d, want 405 for GET", got)
			}
			if got := place(t, url, "me", "no JSON", `{"item":`); got.status != 400 ||
				got.body != "the body is not JSON\n" {
				t.Errorf("got %d %s, want 400 for a body that is not JSON", got.status, got.body)
			}

			id := orderOf(t, place(t, url, "me", "1", tea), tea, false)
			for _, key := range []string{"1", `"1"`} {
				if got := orderOf(t, place(t, url, "me", key, tea), tea, true); got != id {
					t.Errorf("got the order %s for the key %s again, want %s", got, key, id)
				}
			}
			if got := orderOf(t, place(t, url, "you", "1", coffee), coffee, false); got == id {
				t.Errorf("got the order %s for another client, want a new one", got)
			}
			if a := place(t, url, "me", "1", coffee); a.status != 422 || !strings.Contains(a.body, "#key-reused") {
				t.Errorf("got %d %s, want 422 key-reused for another body", a.status, a.body)
			}
			if a := place(t, url+"?ms=1", "me", "1", tea); a.status != 422 {
				t.Errorf("got %d, want 422 for another query", a.status)
			}
		})
	}
}

// TestAnOrderIsBookedOnce has it take its time, and sent again meanwhile, to
// every framework: all of them share one guard.
func TestAnOrderIsBookedOnce(t *testing.T) {
	t.Parallel()
	address := redistest.NewStandalone(t).AdminURL()
	var urls []string
	for _, f := range frameworks {
		urls = append(urls, serving(t, "-framework", f.Name, "-redis", address, "-budget", patient)+"/orders?ms=1000")
	}
	var mu sync.Mutex
	var booked []string
	var wg sync.WaitGroup
	refused := 0
	for i := range 20 {
		wg.Go(func() {
			for {
				a := place(t, urls[i%len(urls)], "me", "1", tea)
				if a.status != 409 {
					mu.Lock()
					defer mu.Unlock()
					again := a.header.Get("Idempotent-Replayed") != ""
					if id := orderOf(t, a, tea, again); !again {
						booked = append(booked, id)
					}
					return
				}
				if a.header.Get("Retry-After") != "1" || !strings.Contains(a.body, "#in-flight") {
					t.Errorf("got %v %s, want Retry-After: 1 and in-flight while the order is placed", a.header, a.body)
				}
				mu.Lock()
				refused++
				mu.Unlock()
				if wait(t.Context()) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(booked) != 1 || refused == 0 {
		t.Errorf("got the orders %v and %d requests refused, want one order and some refused", booked, refused)
	}
	last := orderOf(t, place(t, urls[len(urls)-1], "me", "1", tea), tea, true)
	if !slices.Contains(booked, last) {
		t.Errorf("got the order %s after all had their answer, want %v", last, booked)
	}
}

// wait keeps refused requests from crowding out the one that runs.
func wait(ctx context.Context) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
