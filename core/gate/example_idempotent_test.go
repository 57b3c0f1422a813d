package gate_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/nethttp"
)

// newGuard has a Redis of its own, which ends with the tests.
func newGuard(name string, policy idempotency.Policy) *idempotency.Guard {
	g, err := idempotency.New(storetest.Embedded(), name, policy, nil)
	if err != nil {
		log.Fatal(err)
	}
	return g
}

// order is a request that orders an item, under a key of the client's.
func order(client, key, item string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(item))
	r.Header.Set("X-Account", client)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

// answer prints the status of the answer to a request, where the order is, and whether the
// answer was stored.
func answer(h http.Handler, r *http.Request) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	line := fmt.Sprint(w.Code)
	if location := w.Header().Get("Location"); location != "" {
		line += " Location: " + location
	}
	if w.Header().Get("Idempotent-Replayed") == "true" {
		line += " Idempotent-Replayed: true"
	}
	fmt.Println(line)
}

func ExampleIdempotent() {
	guard := newGuard("orders", idempotency.Retry{}) // or idempotency.New
	account := gate.ByHeader("X-Account")
	booked := 0
	once := nethttp.Middleware(gate.Idempotent(guard, account, nil))
	h := once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		item, _ := io.ReadAll(r.Body) // the gate has read it, too
		claim, _ := idempotency.FromContext(r.Context())
		booked++
		w.Header().Set("Location", fmt.Sprint("/orders/", booked))
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%s, attempt %d\n", item, claim.Attempt())
	}))
	for _, r := range []*http.Request{
		order("alice", "1", "tea"),
		order("alice", "1", "tea"),
		order("alice", `"1"`, "tea"), // the same key, as the draft writes it
		order("alice", "1", "coffee"),
		order("bob", "1", "coffee"),
		order("bob", "", "coffee"),
	} {
		answer(h, r)
	}
	// Output:
	// 201 Location: /orders/1
	// 201 Location: /orders/1 Idempotent-Replayed: true
	// 201 Location: /orders/1 Idempotent-Replayed: true
	// 422
	// 201 Location: /orders/2
	// 400
}

// A client may write the same JSON in another way when it repeats a request.
func ExampleIdempotent_canonicalJSON() {
	guard := newGuard("transfers", idempotency.Retry{})
	once := nethttp.Middleware(gate.Idempotent(guard, gate.ByHeader("X-Account"), &gate.IdempotentOptions{
		Fingerprint: gate.CanonicalJSON,
	}))
	h := once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "sent") }))
	for _, body := range []string{`{"to":"bob","cents":100}`, `{ "cents": 1e2, "to": "bob" }`, `{"to":"bob","cents":101}`} {
		r := order("alice", "1", body)
		r.Header.Set("Content-Type", "application/json")
		answer(h, r)
	}
	// Output:
	// 200
	// 200 Idempotent-Replayed: true
	// 422
}

// An operator finds out what became of an order, and the client gets its answer.
func ExampleStoredReply() {
	guard := newGuard("orders", idempotency.Reject{})
	once := nethttp.Middleware(gate.Idempotent(guard, gate.ByHeader("X-Account"), nil))
	h := once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError) // before the COMMIT, or behind it
	}))
	answer(h, order("alice", "1", "tea"))
	answer(h, order("alice", "1", "tea"))

	key := gate.IdempotencyScope("header:x-account=alice", http.MethodPost, "/orders", "1")
	booked := gate.Reply{Status: http.StatusCreated, Header: []gate.Field{{Name: "Location", Value: "/orders/17"}}}
	if err := guard.Resolve(context.Background(), key, idempotency.DoneWith(gate.StoredReply(booked))); err != nil {
		log.Fatal(err)
	}
	answer(h, order("alice", "1", "tea"))
	// Output:
	// 500
	// 409
	// 201 Location: /orders/17 Idempotent-Replayed: true
}

// An operator looks up what became of a request.
func ExampleIdempotencyScope() {
	guard := newGuard("orders", idempotency.Retry{})
	once := nethttp.Middleware(gate.Idempotent(guard, gate.ByHeader("X-Account"), nil))
	answer(once(http.NotFoundHandler()), order("alice", "1", "tea"))

	key := gate.IdempotencyScope("header:x-account=alice", http.MethodPost, "/orders", "1")
	record, err := guard.Inspect(context.Background(), key)
	fmt.Println(record.State, err)
	// Output:
	// 404
	// done <nil>
}
