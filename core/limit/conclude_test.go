package limit_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// deaf is a client whose Redis refuses the script of conclusions, or loses its replies, and
// does everything else.
type deaf struct {
	*redis.Client

	refuses, loses atomic.Bool
}

func (d *deaf) Process(ctx context.Context, cmd redis.Cmder) error {
	if !runs(cmd, "limit_settle(") {
		return d.Client.Process(ctx, cmd)
	}
	if d.refuses.Load() {
		cmd.SetErr(redisError("LOADING Redis is loading the dataset in memory"))
		return cmd.Err()
	}
	err := d.Client.Process(ctx, cmd)
	if d.loses.Load() {
		err = context.DeadlineExceeded
		cmd.SetErr(err)
	}
	return err
}

// deafIn returns a limiter of 1,000 an hour in a bubble, with estimates on a lease.
func deafIn(t *testing.T) (*deaf, *limit.Limiter, *store.Store) {
	t.Helper()
	d := &deaf{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
	policy := limit.WithLease(limit.FixedWindow{Limit: 1000, Window: time.Hour}, 10*time.Second)
	st := storetest.Direct(t, d, "neap:deaf")
	l := must(limit.New(st, "deaf", []limit.Policy{policy}, closed(time.Second)))(t)
	first := tried(t, l, 1)
	if err := first.Refund(t.Context()); err != nil { // tells the limiter the time of Redis
		t.Fatal(err)
	}
	return d, l, st
}

// TestWhatIsBeingConcludedKeepsItsLease: nothing refers to the decision any more, and its
// Settle is repeated for minutes. Until then nobody gets the permits of its estimate. If
// no call may have run, Settle is repeated for as long as Redis is away.
func TestWhatIsBeingConcludedKeepsItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, l, st := deafIn(t)
		rdb.refuses.Store(true)
		if _, err := new(tried(t, l, 600)).Settle(t.Context(), 700); !errors.Is(err, script.ErrNotExecuted) {
			t.Errorf("Settle without Redis: got %v, want ErrNotExecuted", err)
		}
		for range 20 {
			runtime.GC()
			time.Sleep(time.Minute)
			if d := tried(t, l, 401); d.Allowed {
				t.Fatal("beside 600 that are being settled: got 401 granted, want a denial")
			}
		}
		if got, g := l.Stats(), st.Gauges()[0]; got.Concluding != 1 || g.Background != 1 {
			t.Errorf("got stats %+v and the gauge %+v, want one conclusion in the background", got, g)
		}
		rdb.refuses.Store(false)
		if err := st.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if got := l.Stats(); got.Concluding != 0 || got.Concluded != 1 || got.Settled != 1 || got.Dropped != 0 {
			t.Errorf("got stats %+v, want one settled late", got)
		}
		if left := tried(t, l, 0).Remaining; left != 300 {
			t.Errorf("got %d left, want 300", left)
		}
	})
}

// TestADroppedConclusionIsTold to the gate that asked for it: Redis does not answer for as long as a
// repetition is known.
func TestADroppedConclusionIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, l, _ := deafIn(t)
		rdb.loses.Store(true)
		var told []error
		d := tried(t, l, 100)
		if _, err := d.Settle(undo.WithDropped(t.Context(), func(err error) { told = append(told, err) }), 40); !errors.As(err, new(*script.Error)) {
			t.Errorf("Settle: got %v, want an error of Redis", err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if dropped := new(limit.DroppedError); len(told) != 1 || !errors.As(told[0], &dropped) || dropped.Actual != 40 {
			t.Errorf("got told %v, want once what it would have charged", told)
		}
		rdb.loses.Store(false)
	})
}

// TestASecondCallWhileTheFirstIsRepeated asks once more for what the first has asked for.
// A call of the other kind is refused. Nothing is charged or given back twice.
func TestASecondCallWhileTheFirstIsRepeated(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"refuses", "loses"} {
		synctest.Test(t, func(t *testing.T) {
			rdb, l, st := deafIn(t)
			away := &rdb.refuses
			if fault == "loses" {
				away = &rdb.loses
			}
			away.Store(true)
			settled, refunded := tried(t, l, 100), tried(t, l, 200)
			_, first := settled.Settle(t.Context(), 40)
			other := refunded.Refund(t.Context())
			for _, err := range []error{first, other, second(settled.Settle(t.Context(), 90)), refunded.Refund(t.Context())} {
				if !errors.As(err, new(*script.Error)) {
					t.Errorf("%s: got %v, want an error of Redis", fault, err)
				}
			}
			if err := settled.Refund(t.Context()); !errors.Is(err, limit.ErrRefund) || !strings.Contains(err.Error(), "is being settled") {
				t.Errorf("%s: a refund of what is being settled: got %v, want ErrRefund", fault, err)
			}
			if _, err := refunded.Settle(t.Context(), 1); !errors.Is(err, limit.ErrSettle) || !strings.Contains(err.Error(), "is being given back") {
				t.Errorf("%s: a Settle of what is being given back: got %v, want ErrSettle", fault, err)
			}
			away.Store(false)
			if err := second(settled.Settle(t.Context(), 90)); err != nil && !errors.Is(err, limit.ErrSettle) { // which it is if the background came first
				t.Errorf("%s: Settle again, with Redis: got %v, want no error, or ErrSettle", fault, err)
			}
			if err := refunded.Refund(t.Context()); err != nil && !errors.Is(err, limit.ErrRefund) {
				t.Errorf("%s: a refund again, with Redis: got %v, want no error, or ErrRefund", fault, err)
			}
			if err := st.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			if left := tried(t, l, 0).Remaining; left != 960 {
				t.Errorf("%s: got %d left, want 960 beside the 40 of the first Settle", fault, left)
			}
			if got := l.Stats(); got.Settled != 1 || got.Refunded != 2 || got.Concluding != 0 {
				t.Errorf("%s: got stats %+v, want one settled, and one refunded beside that of the test", fault, got)
			}
		})
	}
}

// TestOneOfManyCallersSettles a decision, of Redis or of this process, and the others are refused.
func TestOneOfManyCallersSettles(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	policy := limit.FixedWindow{Limit: 1000, Window: time.Hour}
	for name, l := range map[string]*limit.Limiter{
		"Redis":   must(limit.New(storetest.At(t, srv.Client(t), srv.Prefix(t)), "many", []limit.Policy{policy}, closed(patience)))(t),
		"process": newTestLocal(t, nil, policy),
	} {
		var settled atomic.Int64 // to how much
		d := tried(t, l, 10)
		together(64, func(n int) {
			if _, err := d.Settle(t.Context(), int64(100+n)); err == nil {
				settled.Store(int64(100 + n))
			} else if !errors.Is(err, limit.ErrSettle) {
				t.Error(err)
			}
		})
		if used := 1000 - tried(t, l, 0).Remaining; l.Stats().Settled != 1 || used != settled.Load() {
			t.Errorf("%s, 64 callers: got %d used by %d settlements, want the %d of one", name, used, l.Stats().Settled, settled.Load())
		}
	}
}

// TestACallerThatIsGoneConcludes: a context that has ended, and one that ends meanwhile,
// change nothing.
func TestACallerThatIsGoneConcludes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, l, _ := deafIn(t)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		settled, refunded := tried(t, l, 100), tried(t, l, 200)
		_, err := settled.Settle(gone, 40)
		if err := errors.Join(err, refunded.Refund(gone)); err != nil {
			t.Errorf("got %v, want no error", err)
		}
		if left := tried(t, l, 0).Remaining; left != 960 {
			t.Errorf("got %d left, want 960", left)
		}
	})
}
