package gate_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/nethttp"
)

// once admits the first request of each key and refuses the others.
func once(key gate.Key) http.Handler {
	limiter, err := limit.NewLocal("keys", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	limited := nethttp.Middleware(gate.RateLimit(limiter, key, nil))
	hello := limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	mux := http.NewServeMux()
	mux.Handle("/users/{id}", hello)
	mux.Handle("/orders", hello)
	return mux
}

// show prints the status of the answer to a request.
func show(h http.Handler, r *http.Request) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code)
}

// A missing header is the client's error, and never a key that all clients share.
func ExampleByHeader() {
	h := once(gate.ByHeader("X-Api-Key"))
	for _, key := range []string{"a", "b", "a", ""} {
		r := httptest.NewRequest(http.MethodGet, "/orders", nil)
		if key != "" {
			r.Header.Set("X-Api-Key", key)
		}
		show(h, r)
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
		show(h, httptest.NewRequest(http.MethodGet, path, nil))
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
		show(h, httptest.NewRequest(http.MethodGet, path, nil))
	}
	// Output:
	// 200
	// 429
	// 200
}

func ExampleByPath() {
	h := once(gate.ByPath())
	for _, path := range []string{"/users/17", "/users/18", "/users/17"} {
		show(h, httptest.NewRequest(http.MethodGet, path, nil))
	}
	// Output:
	// 200
	// 200
	// 429
}

func ExampleByQuery() {
	h := once(gate.ByQuery("shop"))
	for _, target := range []string{"/orders?shop=north", "/orders?shop=south", "/orders?shop=north&page=2", "/orders"} {
		show(h, httptest.NewRequest(http.MethodGet, target, nil))
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
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		show(h, r)
	}
	// Output:
	// 200
	// 200
	// 429
}

type accountKey struct{}

// Authentication outside the gate stores the user. A request without a user gets a 401.
func ExampleByValue() {
	h := once(gate.ByValue("account", accountKey{}))
	for _, user := range []int{17, 18, 17} {
		show(h, httptest.NewRequest(http.MethodGet, "/orders", nil).WithContext(context.WithValue(context.Background(), accountKey{}, user)))
	}
	show(h, httptest.NewRequest(http.MethodGet, "/orders", nil))
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
	show(h, httptest.NewRequest(http.MethodGet, "/orders", nil))
	// Output: 426
}

// Two spellings of an address are one account.
func ExampleFold() {
	h := once(gate.Fold(gate.ByForm("email", nil)))
	for _, form := range []string{"email=Bob@example.com", "email=bob@EXAMPLE.com", "email=ann@example.com"} {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		show(h, r)
	}
	// Output:
	// 200
	// 429
	// 200
}

// One limit for all clients together.
func ExampleEveryone() {
	h := once(gate.Everyone)
	for _, path := range []string{"/users/17", "/orders"} {
		show(h, httptest.NewRequest(http.MethodGet, path, nil))
	}
	// Output:
	// 200
	// 429
}

// An operator looks up what an address has left on a route.
func ExampleSubject() {
	key := gate.Join(gate.ByRoute(), gate.ByIP(nil)) // the key of the gate
	subject, err := gate.Subject(key, gate.Values{
		Method: http.MethodGet, Route: "/users/{id}", Addr: netip.MustParseAddr("203.0.113.7"),
	})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := limit.NewLocal("api", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	d, err := limiter.Peek(context.Background(), subject)
	fmt.Println(d.Remaining, err)
	// Output: 10 <nil>
}
