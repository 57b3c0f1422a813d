package neaptest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

func TestMain(m *testing.M) {
	warmFiber()
	redistest.Main(m)
}

// play runs a test in a bubble, with a Redis.
func play(t *testing.T, scene func(t *testing.T, r *Redis)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { scene(t, New(t)) })
}

// recorder is a testing.TB that keeps failures, and does not fail.
type recorder struct {
	testing.TB
	mu   sync.Mutex
	said []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// says fails the test unless the failures have these words in them, one after the other.
func (r *recorder) says(t *testing.T, want ...string) {
	t.Helper()
	if !slices.EqualFunc(r.said, want, strings.Contains) {
		t.Errorf("got the failures %q, want %q in them", r.said, want)
	}
}

func must[T any](made T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
}

func guard(t testing.TB, rdb *redis.Client) *idempotency.Guard {
	t.Helper()
	return must(idempotency.New(rdb, "orders", idempotency.Retry{}, nil))(t)
}

func locker(t testing.TB, rdb *redis.Client, lease time.Duration) *lock.Locker {
	t.Helper()
	return must(lock.New(rdb, "orders", &lock.Options{Lease: lease}))(t)
}

func limiter(t testing.TB, rdb *redis.Client, n int64, fail store.FailMode) *limit.Limiter {
	t.Helper()
	policies := []limit.Policy{limit.SlidingLog{Limit: n, Window: 10 * time.Minute}}
	return must(limit.New(rdb, "logins", policies, &limit.Options{Fail: fail}))(t)
}

// behind serves a handler behind gates.
func behind(handler http.HandlerFunc, gates ...gate.Gate) Send {
	var h http.Handler = handler
	for _, g := range slices.Backward(gates) {
		h = nethttp.Middleware(g)(h)
	}
	return Handler(h)
}

// created answers 201 when the work is done.
func created(work *Work) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		defer work.Begin()()
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "booked")
	}
}

func everybody(gate.Request) (string, error) { return "all", nil }

// order is a request with an Idempotency-Key.
func order() *http.Request {
	r := httptest.NewRequest("POST", "/orders", strings.NewReader(`{"item":"phone"}`))
	r.Header.Set("Idempotency-Key", "order-17")
	return r
}

func get(t testing.TB, rdb *redis.Client, key string) string {
	t.Helper()
	value, err := rdb.Get(context.Background(), key).Result()
	if err != nil {
		return err.Error()
	}
	return value
}
