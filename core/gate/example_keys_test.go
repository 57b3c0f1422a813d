package gate_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// once admits the first request of each key and refuses the others.
func once(key gate.Key) http.Handler {
	limiter := newLimiter("keys", limit.FixedWindow{Limit: 1, Window: time.Hour})
	mux := http.NewServeMux()
	mux.Handle("/users/{id}", nethttp.Middleware(gate.RateLimit(limiter, key, nil))(hello))
	mux.Handle("/orders", nethttp.Middleware(gate.RateLimit(limiter, key, nil))(hello))
	return mux
}

// A missing header is the client's error, and never a key that all clients share.
func ExampleByHeader() {
	h := once(gate.ByHeader("X-Api-Key"))
	for _, key := range []string{"a", "b", "a", ""} {
		r := get("/orders")
		if key != "" {
			r.Header.Set("X-Api-Key", key)
		}
		send(h, r)
	}
	// Output:
	// 200
	// 200
	// 429
	// 400
}

func ExampleByParam() {
	h := once(gate.ByParam("id"))
	for _, path := range []string{"/users/17", "/users/18", "/users/17"} {
		send(h, get(path))
	}
	// Output:
	// 200
	// 200
	// 429
}

// The pages of all users are one route.
func ExampleByRoute() {
	h := once(gate.ByRoute())
	for _, path := range []string{"/users/17", "/users/18", "/orders"} {
		send(h, get(path))
	}
	// Output:
	// 200
	// 429
	// 200
}

func ExampleByPath() {
	h := once(gate.ByPath())
	for _, path := range []string{"/users/17", "/users/18", "/users/17"} {
		send(h, get(path))
	}
	// Output:
	// 200
	// 200
	// 429
}

func ExampleByQuery() {
	h := once(gate.ByQuery("shop"))
	for _, target := range []string{"/orders?shop=north", "/orders?shop=south", "/orders?shop=north&page=2", "/orders"} {
		send(h, get(target))
	}
	// Output:
	// 200
	// 200
	// 429
	// 400
}

func ExampleByForm() {
	h := once(gate.ByForm("phone", nil))
	for _, form := range []string{"phone=555-0117", "phone=555-0118", "phone=555-0117&again=yes"} {
		r, _ := http.NewRequest(http.MethodPost, "/orders", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		send(h, r)
	}
	// Output:
	// 200
	// 200
	// 429
}

type accountKey struct{}

// Authentication outside the gate stores the user. A request without a user gets a 401.
func ExampleByValue() {
	h := once(gate.ByValue(accountKey{}))
	for _, user := range []int{17, 18, 17} {
		send(h, get("/orders").WithContext(context.WithValue(context.Background(), accountKey{}, user)))
	}
	send(h, get("/orders"))
	// Output:
	// 200
	// 200
	// 429
	// 401
}

// A Key that refuses a request chooses the status.
func ExampleRefuse() {
	h := once(func(r gate.Request) (string, error) {
		if r.Header("X-Api-Version") == nil {
			return "", gate.Refuse(http.StatusUpgradeRequired, "Say which version you speak")
		}
		return fmt.Sprint("key:", r.RemoteAddr().Addr()), nil
	})
	send(h, get("/orders"), "Content-Type")
	// Output: 426 Content-Type: application/problem+json
}
