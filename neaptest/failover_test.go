package neaptest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
)

func TestFailover(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		rdb := r.Client()
		g := guard(t, rdb)
		s := must(stock.New(rdb, "sale", nil))(t)
		must(s.Open(t.Context(), "phone", 1, time.Now().Add(time.Hour)))(t)
		run := must(g.Begin(t.Context(), "order-17", ""))(t)
		if err := run.Claim.Conclude(t.Context(), idempotency.DoneWith([]byte("booked"))); err != nil {
			t.Fatal(err)
		}
		before := r.serve().commands
		r.Failover()
		if n := before.ClientsLen(); n != 0 {
			t.Errorf("got %d connections to the old primary, want none", n)
		}
		if run, err := g.Begin(t.Context(), "order-17", ""); err != nil || run.Done {
			t.Errorf("what was done: got %+v, %v, want that the new primary does not know it", run, err)
		}
		if _, err := s.Reserve(t.Context(), "phone", "ann", "1", nil); !errors.Is(err, stock.ErrUnknown) {
			t.Errorf("what was in stock: got %v, want ErrUnknown", err)
		}
	})
}

// TestFailoverAtWork breaks a connection on which a call waits.
func TestFailoverAtWork(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		l := limiter(t, r.Client(), 1, store.FailClosed)
		if err := l.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.Slow(10 * time.Millisecond)
		var call sync.WaitGroup
		call.Go(func() {
			if _, err := l.Take(t.Context(), "ann"); !errors.Is(err, script.ErrMaybeExecuted) {
				t.Errorf("got %v, want ErrMaybeExecuted", err)
			}
		})
		time.Sleep(time.Millisecond)
		r.Failover()
		call.Wait()
	})
}

// TestFailoverKeepsTheScenes has the new primary be as full as the old one, and lose the same reply.
func TestFailoverKeepsTheScenes(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		rdb := r.Client()
		r.Fill()
		r.LoseReply("")
		r.Failover()
		if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err == nil || err.Error() != errFull {
			t.Errorf("got %v, want %s", err, errFull)
		}
		if _, err := limiter(t, rdb, 1, store.FailClosed).Take(t.Context(), "ann"); !errors.Is(err, script.ErrMaybeExecuted) {
			t.Errorf("the next script: got %v, want ErrMaybeExecuted, since its reply is lost", err)
		}
	})
}
