package stock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
)

// TestImmediateSalesInDoubtAreFound has more calls in doubt than there is room for. The
// ones that would sell for good are looked for all the same, and no more immediate sales
// are sent. Reservations on a lease are still sent.
func TestImmediateSalesInDoubtAreFound(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const room, calls, units = 2, 5, 9
		slow := &redistest.DelayedClient{UniversalClient: rdb, SHA: reserveSHA, Most: 1000}
		s, other := newStock(t, slow, prefix, &stock.Options{Budget: time.Second}), newStock(t, rdb, prefix, nil)
		s.Room(room)
		if err := other.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		open(t, other, "item", units)
		var all sync.WaitGroup
		for i := range calls {
			all.Go(func() { refused(t, s, "item", fmt.Sprint("buyer", i), "1", atOnce, script.ErrMaybeExecuted) })
		}
		all.Wait()
		_, err := s.Reserve(t.Context(), "item", "late", "1", atOnce)
		if !errors.Is(err, script.ErrNotExecuted) || !strings.Contains(err.Error(), "in doubt") {
			t.Errorf("one more: got %v, want %v: too many are in doubt", err, script.ErrNotExecuted)
		}
		if n := s.Stats(); n.Undoing != calls || n.Lapsing != 0 || n.Failed != calls+1 {
			t.Errorf("got stats %+v, want %d undoing, none lapsing and %d failed", n, calls, calls+1)
		}
		for range slow.Waiting() {
			slow.Deliver(t)
		}
		redistest.Await(t, defaultLease*2/3, "all to be given back", func() bool {
			l, err := other.Left(t.Context(), "item")
			return err == nil && l.Left == units && s.Stats().Undone > 0
		})
		held := reserve(t, other, "item", "held", "1", nil)
		if err := held.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestALateConfirmIsFound delivers confirmations late while there is no room: after the
// answer that the reservation has lapsed, and after another Confirm and its Cancel. They
// would sell for good, so they are looked for all the same.
func TestALateConfirmIsFound(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		slow := &redistest.DelayedClient{UniversalClient: rdb, SHA: reserveSHA}
		s, other := newStock(t, slow, prefix, &stock.Options{Budget: 2 * time.Second}), newStock(t, rdb, prefix, nil)
		s.Room(1)
		if err := errors.Join(s.Warm(ctx), other.Warm(ctx)); err != nil {
			t.Fatal(err)
		}
		open(t, other, "item", 2)
		open(t, other, "another", 1)
		ann, ben := reserve(t, s, "item", "ann", "1", nil), reserve(t, s, "item", "ben", "1", nil)
		slow.Most = 1000
		refused(t, s, "another", "first", "1", atOnce, script.ErrMaybeExecuted)
		confirm := func(r *stock.Reservation) error {
			slow.Most = slow.Waiting() + 1
			return r.Confirm(ctx)
		}

		lapse(t, admin, nameOf(prefix, "item"), 1, 1)
		bob := reserve(t, other, "item", "bob", "1", atOnce)
		if err := confirm(ann); !errors.Is(err, stock.ErrLapsed) {
			t.Fatalf("Confirm of what has lapsed: got %v, want %v", err, stock.ErrLapsed)
		}
		key := nameOf(prefix, "item")
		admin.HSet(ctx, key, "left", "many")
		if err := confirm(ben); !errors.Is(err, stock.ErrDisagrees) {
			t.Fatalf("Confirm of an item that was edited: got %v, want %v", err, stock.ErrDisagrees)
		}
		admin.HSet(ctx, key, "left", 0)
		if err := errors.Join(ben.Confirm(ctx), ben.Cancel(ctx), bob.Cancel(ctx)); err != nil {
			t.Fatal(err)
		}
		counts(t, other, "item", 2, 0, 0)
		for range slow.Waiting() {
			slow.Deliver(t)
		}
		redistest.Await(t, defaultLease*2/3, "what was confirmed late to be given back", func() bool {
			l, err := other.Left(ctx, "item")
			return err == nil && l.Left == 2
		})
		redistest.Await(t, 10*time.Second, "the stock to have counted that", func() bool {
			n := s.Stats()
			return n.Lapsing == 0 && n.Undone >= 2
		})
	})
}

// TestCancelsInAnOutageAreRepeated, more than a thousand of them.
func TestCancelsInAnOutageAreRepeated(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	rdb := &redistest.CutClient{Client: srv.Client(t)}
	s := newStock(t, rdb, prefix, &stock.Options{Budget: 5 * time.Second})
	if err := s.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 1500
	open(t, s, "item", n)
	var own []*stock.Reservation
	for i := range n {
		own = append(own, reserve(t, s, "item", fmt.Sprint("buyer", i), "1", atOnce))
	}
	rdb.Cut("refused")
	var all sync.WaitGroup
	for _, r := range own {
		all.Go(func() {
			if err := r.Cancel(t.Context()); !isScripts(err) {
				t.Errorf("Cancel without Redis: got %v, want an error of a script", err)
			}
		})
	}
	all.Wait()
	if got := s.Stats(); got.Concluding != n || got.Dropped != 0 {
		t.Errorf("got stats %+v, want %d concluding and none dropped", got, n)
	}
	rdb.Mend()
	redistest.Await(t, time.Minute, "all to be given back", func() bool {
		l, err := s.Left(t.Context(), "item")
		return err == nil && l.Left == n
	})
}
