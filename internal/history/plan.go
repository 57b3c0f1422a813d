package history

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

const (
	servers = 2
	clients = 4
	perRun  = 1000 // operations that are answered
)

// Plan says how to make histories.
type Plan struct {
	Model     porcupine.Model
	End       func(key string) (input, output any) // as [Check] has it
	Histories int
	Lease     time.Duration // outlives a history, even on a busy machine

	// Workers are those of one history, each of which makes one operation when
	// it is called.
	Workers func(t *testing.T, d *Recorder, rdbs []*redis.Client, prefix string, seed uint64) []func(t *testing.T)
}

// Run makes histories of a thousand answered operations each, under faults, and
// fails the test when one is not linearizable. For one that the checker gives up, which
// it does after a minute, it makes another; more than one in ten, and than one, fail.
func (c *Plan) Run(t *testing.T) {
	t.Helper()
	for i := range servers {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			x := newFaults(t)
			rdbs := make([]*redis.Client, 0, clients)
			for range clients {
				rdbs = append(rdbs, x.client(t))
			}
			prefix := x.srv.Prefix(t)
			rng := redistest.Rand(t)
			all, histories, longest := 0, max(c.Histories/servers, 1), time.Duration(0)
			unknown := 0
			for known := 0; known < histories; {
				answered, checked := c.history(t, x, rdbs, fmt.Sprint(prefix, "-", known+unknown), rng.Uint64())
				if answered > 0 {
					known++
				} else {
					unknown++
				}
				if unknown > max(histories/10, 1) {
					t.Fatalf("the checker gave up %d of %d histories", unknown, known+unknown)
				}
				all, longest = all+answered, max(longest, checked)
			}
			t.Logf("%d histories of %d operations, each checked in %v at the most; %d more were given up",
				histories, all/histories, longest, unknown)
		})
	}
}

// history makes one and checks it, and returns how many operations were answered, or 0
// if the checker gave it up, and how long the checker took.
func (c *Plan) history(t *testing.T, x *faults, rdbs []*redis.Client, prefix string, seed uint64) (int, time.Duration) {
	t.Helper()
	x.begin(seed)
	d := NewRecorder()
	defer d.over.Store(true)
	var wg sync.WaitGroup
	for _, step := range c.Workers(t, d, rdbs, prefix, seed) {
		wg.Go(func() {
			for n := d.Answered(); n < perRun && time.Duration(d.Now()) < c.Lease/4; n = d.Answered() {
				x.reach(t, n)
				if step(t); d.Answered() == n { // as when every connection is broken
					<-time.After(time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	if took := time.Duration(d.Now()); took > c.Lease/2 {
		t.Fatalf("the history took %v, want %v at most: its leases may have lapsed", took, c.Lease/2)
	}
	all, answered := d.Ops(), d.Answered()
	began := time.Now()
	result := Check(c.Model, all, c.End)
	if result == porcupine.Unknown && answered >= perRun {
		return 0, time.Since(began)
	}
	if result != porcupine.Ok || answered < perRun {
		draw(t, c.Model, all)
		t.Fatalf("the history is %s, and %d operations were answered, want %s, and %d at least",
			result, answered, porcupine.Ok, perRun)
	}
	return answered, time.Since(began)
}
