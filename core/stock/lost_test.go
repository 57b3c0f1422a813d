package stock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/lua"
)

var (
	reserveSHA = script.FromFS(lua.FS, "stock_reserve.lua").SHA()
	sweepSHA   = script.FromFS(lua.FS, "stock_sweep.lua").SHA()
)

// TestReserveInAStoppedServerIsUndone stops the server, lets calls fail, and lets the
// server run again. It then reserves units that no caller gets, on a lease or for good.
// They return to stock within two seconds. Units that another call has under the same id
// stay reserved.
func TestReserveInAStoppedServerIsUndone(t *testing.T) {
	t.Parallel()
	storetest.EachPausedServer(t, func(t *testing.T, srv *storetest.PausedServer) {
		ctx, prefix := t.Context(), srv.Prefix(t)
		rdb := srv.Connected(t)
		s, other := newStock(t, rdb, prefix, &stock.Options{Budget: srv.Budget}), newStock(t, srv.Client(t), prefix, nil)
		if err := errors.Join(s.Warm(ctx), other.Warm(ctx)); err != nil {
			t.Fatal(err)
		}
		open(t, other, "item", 100)
		kept := reserve(t, other, "item", "kept", "1", atOnce)
		redistest.ResetStats(t, srv.Admin(t))
		calls := map[string]func(context.Context) error{}
		for i := range 8 {
			buyer := []string{"kept", fmt.Sprint("buyer", i)}[min(i, 1)]
			calls[buyer] = func(ctx context.Context) error {
				r, err := s.Reserve(ctx, "item", buyer, "1", &stock.ReserveOptions{Confirm: i%2 == 0})
				if r != nil {
					t.Errorf("%s has a reservation, want none", buyer)
				}
				return err
			}
		}
		srv.Fail(t, calls, func() {})
		redistest.Await(t, time.Minute, "the grants", func() bool { return redistest.CommandStats(t, srv.Admin(t))["hset"].Calls >= 8 })
		redistest.Await(t, time.Minute, "all to be left", func() bool {
			l, err := other.Left(ctx, "item")
			return err == nil && l.Left == 99 && l.Held == 0 && l.Sold == 1
		})
		srv.Undone(t)
		if n := s.Stats(); n.Reserved != 0 || n.Failed+n.Canceled != 8 {
			t.Errorf("got stats %+v, want none reserved, and 8 failed or canceled", n)
		}
		if err := kept.Cancel(ctx); err != nil {
			t.Error(err)
		}
		redistest.Await(t, defaultLease*2/3, "the part of the call that no caller was told of to be given back", func() bool {
			l, err := other.Left(ctx, "item")
			return err == nil && l.Left == 100
		})
	})
}

// TestALateReserveIsUndone delivers a reservation after attempts to undo it, and again
// after the attempt that undid it. It also delivers one after its Cancel.
func TestALateReserveIsUndone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		ctx := t.Context()
		other := newStock(t, rdb, prefix, nil)
		if err := other.Warm(ctx); err != nil {
			t.Fatal(err)
		}
		open(t, other, "item", 1)
		isLeft := func(what string) {
			t.Helper()
			redistest.Await(t, defaultLease*2/3, what, func() bool {
				l, err := other.Left(ctx, "item")
				return err == nil && l.Left == 1
			})
		}
		for name, opts := range map[string]*stock.ReserveOptions{"on a lease": nil, "at once": atOnce} {
			slow := &redistest.DelayedClient{UniversalClient: rdb, SHA: reserveSHA, Most: 1000}
			s := newStock(t, slow, prefix, &stock.Options{Budget: 3 * time.Second})
			if r, err := s.Reserve(ctx, "item", "ann", "1", opts); r != nil || !errors.Is(err, script.ErrMaybeExecuted) {
				t.Fatalf("%s: got %v, want no reservation and %v", name, err, script.ErrMaybeExecuted)
			}
			for range 3 {
				slow.Deliver(t)
				isLeft(name + ": it to be given back")
			}

			slow = &redistest.DelayedClient{UniversalClient: rdb, SHA: reserveSHA, Most: 1}
			s = newStock(t, slow, prefix, nil)
			r := reserve(t, s, "item", "ann", "1", opts)
			if err := r.Cancel(ctx); err != nil {
				t.Error(err)
			}
			slow.Deliver(t)
			isLeft(name + ": what comes behind its Cancel to be given back")

			slow = &redistest.DelayedClient{UniversalClient: rdb, SHA: reserveSHA, Most: 1}
			s = newStock(t, slow, prefix, nil)
			r = reserve(t, s, "item", "ann", "1", atOnce)
			slow.Deliver(t)
			counts(t, other, "item", 0, 0, 1)
			if err := r.Cancel(ctx); err != nil {
				t.Error(err)
			}
			counts(t, other, "item", 1, 0, 0)
		}
	})
}

// TestConclusionsWithoutAnAnswerAreRepeated: Confirm and Cancel go on in the background
// while the server does not answer, and the last of them counts.
func TestConclusionsWithoutAnAnswerAreRepeated(t *testing.T) {
	t.Parallel()
	for how := range map[string]bool{"refused": true, "silent": true} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Standalone(t)
			prefix := srv.Prefix(t)
			ctx := t.Context()
			rdb := &redistest.CutClient{Client: srv.Client(t)}
			s, other := newStock(t, rdb, prefix, &stock.Options{Budget: 2 * time.Second}), newStock(t, srv.Client(t), prefix, nil)
			if err := errors.Join(s.Warm(ctx), other.Warm(ctx)); err != nil {
				t.Fatal(err)
			}
			open(t, other, "item", 10)
			var all []*stock.Reservation
			for i := range 4 {
				all = append(all, reserve(t, s, "item", fmt.Sprint("buyer", i), "1", &stock.ReserveOptions{Confirm: i > 1}))
			}
			rdb.Cut(how)
			for i, call := range []func() error{
				func() error { return all[0].Confirm(ctx) },
				func() error { return all[1].Cancel(ctx) },
				func() error { return all[2].Cancel(ctx) },
			} {
				if err := call(); !isScripts(err) {
					t.Errorf("conclusion %d without Redis: got %v, want an error of a script", i, err)
				}
			}
			for i, r := range all[1:3] { // held, and sold
				for call, err := range map[string]error{"Confirm": r.Confirm(ctx), "Renew": r.Renew(ctx), "Err": r.Err()} {
					if !errors.Is(err, stock.ErrCancelled) || r.Confirmed() {
						t.Errorf("%s behind Cancel %d: got %v, confirmed is %t, want %v and false", call, i, err, r.Confirmed(), stock.ErrCancelled)
					}
				}
			}
			rdb.Mend()
			redistest.Await(t, time.Minute, "all to be concluded", func() bool { return s.Stats().Concluding == 0 })
			counts(t, other, "item", 8, 0, 2)
			if n := s.Stats(); n.Concluded != 3 || n.Unconfirmed != 3 || !all[0].Confirmed() {
				t.Errorf("got stats %+v, and the first confirmed %t, want 3 concluded, 3 unconfirmed, and true",
					n, all[0].Confirmed())
			}

			rdb.Cut(how)
			last := reserve(t, other, "item", "last", "1", nil)
			mine, err := s.Resume("item", "last", "1", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := mine.Confirm(ctx); !isScripts(err) {
				t.Errorf("Confirm without Redis: got %v, want an error of a script", err)
			}
			rdb.Mend()
			if err := mine.Cancel(ctx); err != nil {
				t.Error(err)
			}
			redistest.Await(t, time.Minute, "all to be concluded", func() bool { return s.Stats().Concluding == 0 })
			counts(t, other, "item", 8, 0, 2)
			if err := last.Confirm(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

func isScripts(err error) bool {
	_, ok := errors.AsType[*script.Error](err)
	return ok
}

// TestRenewEndsWithItsCaller: Renew waits for a Confirm in progress, but not longer than
// its own context lasts.
func TestRenewEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &redistest.CutClient{Client: inBubble(t)}
		s := newStock(t, rdb, "neap", nil)
		open(t, s, "item", 1)
		ann := reserve(t, s, "item", "ann", "1", nil)
		rdb.Cut("silent")
		confirmed := make(chan error)
		go func() { confirmed <- ann.Confirm(t.Context()) }()
		synctest.Wait()
		const left = time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), left)
		defer cancel()
		began := time.Now()
		if err := ann.Renew(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != left {
			t.Errorf("Renew beside a Confirm: got %v after %v, want the end of its context after %v", err, time.Since(began), left)
		}
		if err := <-confirmed; err == nil {
			t.Error("Confirm of a server that is silent: got no error, want one")
		}
		rdb.Mend()
		redistest.Await(t, time.Minute, "the confirmation", ann.Confirmed)
		time.Sleep(time.Second)
	})
}
