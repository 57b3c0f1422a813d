package gatetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// outliving: what a gate makes from a request's context may outlive the request. It never
// has the values of another request, and causes no data race with it.
func outliving(t *testing.T, d Driver) {
	contexts := map[string]func(x Exchange) context.Context{"Own": Exchange.Context}
	if d.Pooled != nil {
		contexts["Pooled"] = d.Pooled
		contexts["MadeOfPooled"] = func(x Exchange) context.Context {
			return context.WithValue(d.Pooled(x), contextKey("key"), 1)
		}
	}
	for name, own := range contexts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outlivingContexts(t, d, own, name != "Own")
		})
	}
}

func outlivingContexts(t *testing.T, d Driver, own func(Exchange) context.Context, stored bool) {
	const clients, requests = 8, 20
	over, late := make(chan struct{}), sync.WaitGroup{}
	// on goes on with a context behind the request, as a handler of a callback does.
	on := func(ctx context.Context, user any) {
		if got := ctx.Value("user"); stored && got != user {
			t.Errorf("while the request runs, its context has the user %v, want %v", got, user)
		}
		child, cancel := context.WithCancel(context.WithValue(ctx, contextKey("late"), 1))
		detached, cancelDetached := context.WithTimeout(context.WithoutCancel(ctx), time.Hour)
		late.Go(func() {
			defer cancel()
			defer cancelDetached()
			for range 10 { // those of all requests together must leave the machine to the requests
				for _, c := range []context.Context{ctx, child, detached} {
					if got := c.Value("user"); got != nil && got != user {
						t.Errorf("the context that outlives the request of %v has the user %v, want its own or none", user, got)
						return
					}
					if c.Err() == nil {
						_, _ = c.Deadline()
					}
				}
				select {
				case <-over:
					return
				case <-time.After(25 * time.Millisecond):
				}
			}
		})
	}
	guard := newGuard(t, d, idempotency.Options{})
	locker := newLocker(t, d)
	address := d.Serve(t, App{
		Around: []Middleware{func(x Exchange, next func() error) error {
			x.SetValue("user", strings.Clone(x.Query("user")))
			x.SetContext(own(x))
			return next()
		}},
		Routes: []Route{{
			Method: "POST", Pattern: "/gates",
			Gates: []gate.Gate{
				gate.Idempotent(guard, gate.Everyone, nil),
				gate.Exclusive(locker, gate.ByQuery("user"), nil),
			},
			Handler: func(x Exchange) error {
				on(x.Context(), x.Value("user"))
				if x.Query("stream") == "1" {
					return x.Stream(200, func(yield func(string) bool) { yield("ok") })
				}
				return say(200, "ok")(x)
			},
		}, {
			Method: "GET", Pattern: "/endpoint",
			Endpoint: serve(func(q gate.Request) gate.Reply {
				on(q.Context(), q.Value("user"))
				return gate.Reply{Status: 200}
			}),
		}},
	})
	var wg sync.WaitGroup
	for i := range clients {
		c := dial(t, address)
		wg.Go(func() {
			for j := range requests {
				for _, target := range []string{"POST /gates", "GET /endpoint"} {
					method, path, _ := strings.Cut(target, " ")
					user := fmt.Sprintf("%d-%d", i, j)
					a, err := c.try(method, path+"?user="+user+"&stream="+strconv.Itoa(j%2), "", "Idempotency-Key: "+user)
					if err != nil || a.status != 200 {
						t.Errorf("got %d %q, %v, want 200", a.status, a.body, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	close(over)
	late.Wait()
}
