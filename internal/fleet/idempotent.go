package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// once is the gate of one instance, with a guard and a client of its own.
func once(t testing.TB, server *redistest.Server, prefix string) gate.Gate {
	t.Helper()
	rdb := server.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	g, err := idempotency.New(storetest.At(t, rdb, prefix), "orders", idempotency.Retry{}, &idempotency.Options{Budget: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return gate.Idempotent(g, gate.ByHeader("X-Account"), nil)
}

// What was answered behind one framework is answered again behind any other,
// byte for byte.
func (f Fleet) testReplayedBehindAnother(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	prefix := server.Prefix(t)
	var runs atomic.Int64
	body := func(n int64) string { return fmt.Sprintf("{\"order\":%d}\n\x00\xff", n) }
	book := func(_ context.Context, add func(name, value string)) (int, string) {
		n := runs.Add(1)
		add("Content-Type", "application/json; of=neap")
		add("Location", fmt.Sprint("/orders/", n))
		add("Etag", `W/"1"`)
		add("Link", "</orders/2>; rel=next")
		add("Link", "</orders>; rel=up")
		add("Set-Cookie", "session=1")
		return 201, body(n)
	}
	addresses := map[string]string{}
	for _, name := range f.names() {
		addresses[name] = f[name].Instance(t, once(t, server, prefix), book)
	}
	want := func(n int64, more ...string) answer {
		lines := "Content-Type: application/json; of=neap\nEtag: W/\"1\"\n" + strings.Join(more, "") +
			"Link: </orders/2>; rel=next | </orders>; rel=up\nLocation: /orders/" + fmt.Sprint(n) + "\n"
		return answer{201, lines, body(n)}
	}
	ask := func(name, key, body string) answer {
		a, err := order(addresses[name], "/orders/a%2Fb?try=1", key, body)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for i, first := range f.names() {
		n, key := int64(i+1), "begun-"+first
		got := want(n)
		got.lines += "Set-Cookie: session=1\n"
		if a := ask(first, key, "tea"); a != got {
			t.Fatalf("behind %s: got %+v, want %+v", first, a, got)
		}
		for _, then := range f.names() {
			if a := ask(then, `"`+key+`"`, "tea"); a != want(n, "Idempotent-Replayed: true\n") {
				t.Errorf("begun behind %s, and then behind %s: got %+v, want %+v", first, then, a, want(n))
			}
			if a := ask(then, key, "two"); a.status != 422 {
				t.Errorf("begun behind %s, and another request behind %s: got %+v, want 422", first, then, a)
			}
		}
	}
	if n := runs.Load(); n != int64(len(f)) {
		t.Errorf("got %d runs, want %d", n, len(f))
	}
}

// Of many that are the same at once, behind all frameworks, one runs. It waits
// until all the others have been answered.
func (f Fleet) testOnceBehindAll(t *testing.T) {
	t.Parallel()
	const requests, patience = 200, time.Minute
	server := redistest.Standalone(t)
	prefix := server.Prefix(t)
	var runs, refused atomic.Int64
	all := make(chan struct{})
	book := func(ctx context.Context, add func(name, value string)) (int, string) {
		select {
		case <-all:
		case <-ctx.Done():
			t.Errorf("the claim ended with %v, want it held", context.Cause(ctx))
		case <-time.After(patience):
			t.Errorf("%d of the others were answered, want %d", refused.Load(), requests-1)
		}
		add("Content-Type", "text/plain")
		return 201, fmt.Sprint("run ", runs.Add(1))
	}
	addresses := make([]string, len(f))
	for i, name := range f.names() {
		addresses[i] = f[name].Instance(t, once(t, server, prefix), book)
	}
	var ran atomic.Int64
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			a, err := order(addresses[i%len(addresses)], "/orders/1", "k", "tea")
			switch {
			case err != nil:
				t.Error(err)
			case a.status == 201 && a.body == "run 1" && !strings.Contains(a.lines, "Idempotent-Replayed"):
				ran.Add(1)
			case a.status == 409 && strings.Contains(a.lines, "Retry-After: 1\n") && strings.Contains(a.body, "#in-flight"):
				if refused.Add(1) == requests-1 {
					close(all)
				}
			default:
				t.Errorf("got %+v, want the run's own answer, or 409 of a request in flight", a)
			}
		})
	}
	wg.Wait()
	if runs.Load() != 1 || ran.Load() != 1 || refused.Load() != requests-1 {
		t.Errorf("got %d runs, %d answered and %d refused, want 1, 1 and %d",
			runs.Load(), ran.Load(), refused.Load(), requests-1)
	}
	for i, name := range f.names() {
		if a, err := order(addresses[i], "/orders/1", "k", "tea"); err != nil || a.body != "run 1" || !strings.Contains(a.lines, "Idempotent-Replayed: true\n") {
			t.Errorf("then behind %s: got %+v, %v, want \"run 1\" replayed", name, a, err)
		}
	}
}
