package fleet

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// Requests for one thing at a time, each of which runs once: whichever gate comes
// first, a request that the other refuses leaves nothing behind, and runs when it
// comes again.
func (f Fleet) testOneAtATimeAndEachOnce(t *testing.T) {
	t.Parallel()
	const keys, each = 4, 4
	for _, places := range []string{"the lock first", "the lock last"} {
		t.Run(places, func(t *testing.T) {
			t.Parallel()
			server := redistest.Standalone(t)
			prefix := server.Prefix(t)
			var running, runs, refused atomic.Int64
			book := func(context.Context, func(string, string)) (int, string) {
				if n := running.Add(1); n > 1 {
					t.Errorf("%d run at once, want one at a time", n)
				}
				defer running.Add(-1)
				<-time.After(5 * time.Millisecond)
				return http.StatusCreated, fmt.Sprint("run ", runs.Add(1))
			}
			var addresses []string
			for _, name := range f.names() {
				locker, err := lock.New(storetest.At(t, server.Client(t), prefix), "shop", &lock.Options{Budget: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				gates := []gate.Gate{
					gate.Exclusive(locker, gate.ByHeader("X-Account"), nil), once(t, server, prefix),
				}
				if places == "the lock last" {
					gates[0], gates[1] = gates[1], gates[0]
				}
				addresses = append(addresses, f[name].Instance(t, gate.Chain(gates...), book))
			}
			var bodies [keys]sync.Map
			var wg sync.WaitGroup
			for i := range keys * each {
				key := i % keys
				wg.Go(func() {
					redistest.Await(t, time.Minute, fmt.Sprint("an answer under key ", key), func() bool {
						a, err := orderOf(addresses[i/keys], key)
						switch {
						case err == nil && a.status == http.StatusCreated:
							bodies[key].Store(a.body, true)
							return true
						case err != nil || a.status != http.StatusConflict:
							t.Errorf("got %+v, %v, want 201 or 409", a, err)
							return true
						}
						refused.Add(1)
						return false
					})
				})
			}
			wg.Wait()
			if runs.Load() != keys || refused.Load() == 0 {
				t.Errorf("got %d runs of %d orders, and %d requests refused, want one run of each, and some refused",
					runs.Load(), keys, refused.Load())
			}
			for key := range bodies {
				answers := 0
				bodies[key].Range(func(any, any) bool { answers++; return true })
				if answers != 1 {
					t.Errorf("got %d answers under key %d, want 1", answers, key)
				}
			}
		})
	}
}

func orderOf(address string, key int) (answer, error) {
	return order(address, "/orders/1", fmt.Sprint("order-", key), fmt.Sprint("tea for ", key))
}
