package limit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// concludes are what may become of a decision that has taken 100 permits.
var concludes = map[string]struct {
	used int64
	by   func(ctx context.Context, d limit.Decision) error
}{
	"more":    {500, settledTo(500)},
	"less":    {20, settledTo(20)},
	"equal":   {100, settledTo(100)},
	"nothing": {0, settledTo(0)},
	"refund":  {0, func(ctx context.Context, d limit.Decision) error { return d.Refund(ctx) }},
}

func settledTo(actual int64) func(context.Context, limit.Decision) error {
	return func(ctx context.Context, d limit.Decision) error { return second(d.Settle(ctx, actual)) }
}

const (
	plenty    = 10_000
	briefly   = 200 * time.Millisecond // the lease of estimates
	something = "requests"             // the name of a policy that is not settled
)

// concludable are the policies whose decisions are concluded, alone and together. Those
// on a lease may owe, since lapseAll takes all of a window for a moment.
func concludable() map[string][]limit.Policy {
	month := 30 * 24 * time.Hour
	all := map[string][]limit.Policy{
		"window":         {limit.FixedWindow{Limit: plenty, Window: month}},
		"window, lease":  {limit.WithLease(limit.FixedWindow{Limit: plenty, Window: month, MaxDebt: plenty}, briefly)},
		"month":          {limit.CalendarWindow{Limit: plenty, Every: limit.Month}},
		"month, lease":   {limit.WithLease(limit.CalendarWindow{Limit: plenty, Every: limit.Month, MaxDebt: plenty}, briefly)},
		"bucket":         {limit.TokenBucket{Rate: 1, Per: time.Hour, Burst: plenty}},
		"kept bucket":    {limit.KeepOnChange(limit.TokenBucket{Name: "kept-bucket", Rate: 1, Per: time.Hour, Burst: plenty})},
		"sliding window": {limit.SlidingWindow{Limit: plenty, Window: month}},
	}
	all["set"] = []limit.Policy{
		limit.WithLease(limit.FixedWindow{Name: "window", Limit: plenty, Window: month, MaxDebt: plenty}, briefly),
		limit.TokenBucket{Name: "bucket", Rate: 1, Per: time.Hour, Burst: plenty},
		limit.PerRequest(limit.SlidingLog{Name: something, Limit: plenty, Window: month}),
		limit.Shadow(limit.WithLease(limit.CalendarWindow{Name: "month", Limit: plenty, Every: limit.Month, MaxDebt: plenty}, briefly)),
	}
	return all
}

// unspent is a subject with decisions that are to be concluded.
type unspent struct {
	limiter *limit.Limiter
	taker   *limit.Limiter // took and concludes the decisions
	subject string
	all     []limit.Decision
	by      func(context.Context, limit.Decision) error
	used    int64 // by all together
	settles bool
}

const perSubject = 4 // decisions of each subject

// takeUnspent takes for each kind of conclusion under each set of policies. The decisions are
// concluded within the budget.
func takeUnspent(t *testing.T, at *store.Store, budget time.Duration) (all []*unspent) {
	t.Helper()
	for name, policies := range concludable() {
		by := must(limit.New(at, "owing", policies, closed(budget)))(t)
		for what, how := range concludes {
			o := &unspent{limiter: must(limit.New(at, "owing", policies, closed(10*time.Second)))(t), taker: by}
			o.by, o.used, o.settles = how.by, perSubject*how.used, what != "refund"
			try := 0
			redistest.Await(t, time.Minute, "the decisions within the budget", func() bool { // a busy machine may need longer
				o.subject, o.all = fmt.Sprintf("%s/%s/%d", name, what, try), nil
				for range perSubject {
					if d, err := by.TakeN(t.Context(), o.subject, 100); err == nil && d.Allowed {
						o.all = append(o.all, d)
					}
				}
				try++
				return len(o.all) == perSubject
			})
			all = append(all, o)
		}
	}
	return all
}

// concludeAll concludes all decisions at the same time, and returns how many calls failed.
func concludeAll(t *testing.T, all []*unspent) (failed int) {
	t.Helper()
	var done sync.WaitGroup
	var mu sync.Mutex
	for _, o := range all {
		for _, d := range o.all {
			done.Go(func() {
				if err := o.by(context.Background(), d); err != nil {
					if errors.Is(err, limit.ErrSettle) || errors.Is(err, limit.ErrRefund) {
						t.Errorf("%s: got %v, want an error of Redis, or none", o.subject, err)
					}
					mu.Lock()
					failed++
					mu.Unlock()
				}
			})
		}
	}
	done.Wait()
	return failed
}

// lapseAll asks for more than there is room for, so that estimates whose lease has ended are
// taken back. What it is granted it gives back.
func lapseAll(t *testing.T, all []*unspent) {
	t.Helper()
	for _, o := range all {
		if d := must(o.limiter.TakeN(t.Context(), o.subject, plenty))(t); d.Allowed {
			if err := d.Refund(t.Context()); err != nil {
				t.Errorf("%s: a refund of all: got %v, want no error", o.subject, err)
			}
		}
	}
}

// chargesWhatWasUsed waits for the background and compares what is charged with what was used.
func chargesWhatWasUsed(t *testing.T, st *store.Store, all []*unspent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(0, st.Drain(ctx))(t)
	for _, o := range all {
		d := must(o.limiter.TakeN(t.Context(), o.subject, 0))(t)
		for s := range d.States() {
			want, kept := o.used, int64(0)
			switch {
			case s.Policy == something && o.settles:
				want = int64(len(o.all))
			case strings.Contains(s.Policy, "bucket"):
				kept = 1 // what drains in a moment
			}
			if got := plenty - s.Remaining; got < want || got > want+kept {
				t.Errorf("%s: got %d charged by %s, want the %d that were used, and up to %d more", o.subject, got, s.Policy, want, kept)
			}
		}
		if s := o.taker.Stats(); s.Concluding != 0 || s.Dropped != 0 {
			t.Errorf("%s: got stats %+v, want none that is still being concluded or was given up", o.subject, s)
		}
	}
}

// TestWhatIsUsedIsChargedThroughAStall stops Redis while decisions are concluded, for
// longer than a budget, and in the end for longer than the leases of their estimates.
func TestWhatIsUsedIsChargedThroughAStall(t *testing.T) {
	t.Parallel()
	for _, stall := range []time.Duration{100 * time.Millisecond, time.Second} {
		t.Run(stall.String(), func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			st := storetest.At(t, srv.Client(t), srv.Prefix(t))
			all := takeUnspent(t, st, 50*time.Millisecond)
			srv.Pause(t)
			began := time.Now()
			failed := concludeAll(t, all)
			redistest.Await(t, time.Minute, "the stall", func() bool { return time.Since(began) > stall })
			srv.Resume(t)
			lapseAll(t, all)
			if chargesWhatWasUsed(t, st, all); failed == 0 {
				t.Error("no conclusion failed at first, want some that are repeated in the background")
			}
		})
	}
	t.Run("10s", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := redistest.Bubble(t)
			st := storetest.At(t, redistest.BubbleClient(t, m), "neap:stall")
			all := takeUnspent(t, st, 50*time.Millisecond)
			resumed := make(chan struct{})
			m.Server().SetPreHook(func(*server.Peer, string, ...string) bool {
				<-resumed
				return false
			})
			failed := make(chan int)
			go func() { failed <- concludeAll(t, all) }()
			time.Sleep(10 * time.Second)
			close(resumed)
			lapseAll(t, all)
			if n := <-failed; n != len(all)*perSubject {
				t.Errorf("got %d conclusions that failed at first, want all %d", n, len(all)*perSubject)
			}
			chargesWhatWasUsed(t, st, all)
		})
	})
}

// TestWhatIsUsedIsChargedThroughACut cuts the connection after each number of bytes that
// a conclusion sends and receives.
func TestWhatIsUsedIsChargedThroughACut(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	for name, policies := range concludable() {
		for what, how := range concludes {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				cutter := redistest.NewCutter(t)
				rdb := srv.Client(t, func(o *redis.Options) { o.Dialer = cutter.Dial })
				st := storetest.At(t, rdb, srv.Prefix(t))
				l := must(limit.New(st, "cut", policies, closed(10*time.Second)))(t)
				warm := must(l.Take(t.Context(), "warm"))(t)
				if err := warm.Refund(t.Context()); err != nil {
					t.Fatal(err)
				}
				stride := max(3000/redistest.Ops(3000), 1)
				bytes, cuts := 0, int64(0)
				for ; cutter.Cuts() == cuts; bytes += stride {
					cuts++
					d := must(l.TakeN(t.Context(), fmt.Sprint(bytes), 100))(t)
					cutter.CutOnce(bytes, []redistest.Fault{redistest.EOF, redistest.Reset}[bytes/stride%2])
					if err := how.by(t.Context(), d); err != nil {
						t.Fatalf("after %d bytes: got %v, want no error", bytes, err)
					}
					cutter.CutOnce(-1, 0)
					o := &unspent{limiter: l, taker: l, subject: fmt.Sprint(bytes), used: how.used, settles: what != "refund", all: []limit.Decision{d}}
					chargesWhatWasUsed(t, st, []*unspent{o})
				}
				if bytes < 300 {
					t.Errorf("got %d bytes of a conclusion, want some hundreds", bytes)
				}
			})
		}
	}
}
