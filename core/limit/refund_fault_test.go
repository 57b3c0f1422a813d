package limit_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestRefundThatAStalledServerRunsLate: it changes nothing, because what it would give
// back has drained by then, and what is there belongs to other decisions.
func TestRefundThatAStalledServerRunsLate(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	admin := srv.Admin(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
	for _, rate := range []int64{10, 2000} { // on PTTL and on TIME
		bucket := limit.TokenBucket{Rate: rate, Per: time.Second, Burst: 100 * rate}
		l := must(limit.New(storetest.At(t, srv.Client(t), prefix), "stalled", []limit.Policy{bucket}, closed(500*time.Millisecond)))(t)
		decision := func(what string, cost int64) (d limit.Decision) {
			t.Helper()
			redistest.Await(t, 20*time.Second, what, func() bool {
				var err error
				d, err = l.TakeN(t.Context(), fmt.Sprint(rate), cost)
				return err == nil
			})
			return d
		}
		redistest.Await(t, 20*time.Second, "the clock to be known", func() bool {
			d, err := l.TakeN(t.Context(), "clock", rate)
			return err == nil && d.Refund(t.Context()) == nil
		})
		early := decision("a decision", rate)
		asked := time.Now()
		others := decision("a decision on somebody else", 20*rate)
		answered := time.Now()
		calls := redistest.CommandStats(t, admin)["evalsha"].Calls
		srv.Pause(t)
		if err := early.Refund(t.Context()); !errors.Is(err, script.ErrMaybeExecuted) {
			t.Errorf("rate %d: a refund to a stopped server: got %v, want ErrMaybeExecuted", rate, err)
		}
		redistest.Await(t, 20*time.Second, "what it took to have drained", func() bool {
			return time.Since(answered) > time.Second
		})
		srv.Resume(t)
		redistest.Await(t, 20*time.Second, "the refund to have run", func() bool {
			return redistest.CommandStats(t, admin)["evalsha"].Calls > calls
		})
		d := decision("what remains", 0)
		drained := int64(time.Since(asked)*time.Duration(rate)/time.Second) + rate/10 + 1
		if free := d.Remaining - others.Remaining; free > drained {
			t.Errorf("rate %d: got %d more remaining, want at most the %d that have drained", rate, free, drained)
		}
		if err := early.Refund(t.Context()); !errors.Is(err, limit.ErrRefund) {
			t.Errorf("rate %d: the refund again: got %v, want ErrRefund", rate, err)
		}
	}
}

// TestLostRefundRunsOnce loses the reply of a refund that was made. It is asked again, and
// gives back once.
func TestLostRefundRunsOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	proxy := srv.Proxy(t)
	rdb := srv.Client(t, func(o *redis.Options) { o.Dialer = proxy.Dial })
	for i, policies := range append(each(slow), slow) {
		l := must(limit.New(storetest.At(t, rdb, srv.Prefix(t)), fmt.Sprintf("lost%d", i), policies, closed(10*time.Second)))(t)
		warm, err := l.TakeN(t.Context(), "s", 1)
		if err == nil {
			err = warm.Refund(t.Context()) // tells the server the script, and the limiter the time
		}
		d, fault := l.TakeN(t.Context(), "s", 3)
		if _, all := l.TakeN(t.Context(), "s", 6); err != nil || fault != nil || all != nil {
			t.Fatalf("a take and a refund, a take of 3 and one of 6: got %v, %v, %v, want no errors", err, fault, all)
		}
		proxy.Lose(redistest.EOF, 1, "evalsha", "eval")
		if err := d.Refund(t.Context()); err != nil {
			t.Errorf("set %d: a refund whose first reply was lost: got %v, want no error", i, err)
		}
		proxy.Lose(redistest.EOF, 0)
		if err := d.Refund(t.Context()); !errors.Is(err, limit.ErrRefund) {
			t.Errorf("set %d: the refund again: got %v, want ErrRefund", i, err)
		}
		wantRemaining(t, l, 94, fmt.Sprintf("of set %d", i))
	}
}

// refusing rejects commands while it is told to.
type refusing struct {
	*redis.Client

	with atomic.Pointer[string]
}

func (r *refusing) Process(ctx context.Context, cmd redis.Cmder) error {
	if text := r.with.Load(); text != nil {
		err := redisError(*text)
		cmd.SetErr(err)
		return err
	}
	return r.Client.Process(ctx, cmd)
}

// TestRefundThatDidNotRunMayBeTriedAgain, if Redis itself says that it did not run.
func TestRefundThatDidNotRunMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	away := &refusing{Client: rdb}
	st := storetest.Open(t, away, store.Options{})
	l := must(limit.New(st, "away", slow, closed(5*time.Second)))(t)
	for _, known := range []bool{false, true} {
		d := must(l.Take(t.Context(), "s"))(t)
		text := "OOM command not allowed when used memory > 'maxmemory'."
		away.with.Store(&text)
		for range 2 {
			if err := d.Refund(t.Context()); !errors.Is(err, script.ErrNotExecuted) {
				t.Errorf("clock known %v: a refund that Redis refused: got %v, want ErrNotExecuted", known, err)
			}
		}
		away.with.Store(nil)
		if err := d.Refund(t.Context()); err != nil && !errors.Is(err, limit.ErrRefund) { // which it is if the background came first
			t.Errorf("clock known %v: the refund when Redis is back: got %v, want no error, or ErrRefund", known, err)
		}
	}
	must(0, st.Drain(t.Context()))(t)
	if n := l.Stats().Refunded; n != 2 {
		t.Errorf("got %d refunded, want 2", n)
	}
}

// TestRefundOfDegradedDecisions: what was decided in process is given back in process,
// and FailOpen has taken nothing.
func TestRefundOfDegradedDecisions(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	away := &refusing{Client: rdb}
	text := "LOADING Redis is loading the dataset in memory"
	away.with.Store(&text)
	for _, mode := range []store.FailMode{store.FailLocal, store.FailOpen} {
		l := must(limit.New(away, "degraded", slow, &limit.Options{Fail: mode, Budget: 5 * time.Millisecond}))(t)
		d, err := l.TakeN(t.Context(), "s", 100)
		if err != nil || !d.Degraded {
			t.Fatalf("%v: a take while Redis is away: got %+v, %v, want it degraded", mode, d, err)
		}
		if err := d.Refund(t.Context()); err != nil {
			t.Errorf("%v: the refund of a degraded decision: got %v, want no error", mode, err)
		}
		if err := d.Refund(t.Context()); !errors.Is(err, limit.ErrRefund) {
			t.Errorf("%v: the refund again: got %v, want ErrRefund", mode, err)
		}
		if d, err := l.TakeN(t.Context(), "s", 100); err != nil || !d.Allowed {
			t.Errorf("%v: a take of all permits after the refund: got %+v, %v, want it allowed", mode, d, err)
		}
	}
}
