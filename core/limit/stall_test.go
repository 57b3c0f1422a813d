package limit

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

	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// concludes are what may become of a decision that has taken 100 permits.
var concludes = map[string]struct {
	used int64
	by   func(ctx context.Context, d Decision) error
}{
	"more":    {500, settledTo(500)},
	"less":    {20, settledTo(20)},
	"equal":   {100, settledTo(100)},
	"nothing": {0, settledTo(0)},
	"refund":  {0, func(ctx context.Context, d Decision) error { return d.Refund(ctx) }},
}

func settledTo(actual int64) func(context.Context, Decision) error {
	return func(ctx context.Context, d Decision) error { return second(d.Settle(ctx, actual)) }
}

const (
	plenty    = 10_000
	briefly   = 200 * time.Millisecond // the lease of estimates
	something = "requests"             // the name of a policy that is not settled
)

// concludable are the policies whose decisions are concluded, alone and together. Those
// on a lease may owe, since lapseAll takes all of a window for a moment.
func concludable() map[string][]Policy {
	month := 30 * 24 * time.Hour
	all := map[string][]Policy{
		"window":         {FixedWindow{Limit: plenty, Window: month}},
		"window, lease":  {WithLease(FixedWindow{Limit: plenty, Window: month, MaxDebt: plenty}, briefly)},
		"month":          {CalendarWindow{Limit: plenty, Every: Month}},
		"month, lease":   {WithLease(CalendarWindow{Limit: plenty, Every: Month, MaxDebt: plenty}, briefly)},
		"bucket":         {TokenBucket{Rate: 1, Per: time.Hour, Burst: plenty}},
		"kept bucket":    {KeepOnChange(TokenBucket{Name: "kept-bucket", Rate: 1, Per: time.Hour, Burst: plenty})},
		"sliding window": {SlidingWindow{Limit: plenty, Window: month}},
	}
	all["set"] = []Policy{
		WithLease(FixedWindow{Name: "window", Limit: plenty, Window: month, MaxDebt: plenty}, briefly),
		TokenBucket{Name: "bucket", Rate: 1, Per: time.Hour, Burst: plenty},
		PerRequest(SlidingLog{Name: something, Limit: plenty, Window: month}),
		Shadow(WithLease(CalendarWindow{Name: "month", Limit: plenty, Every: Month, MaxDebt: plenty}, briefly)),
	}
	return all
}

// unspent is a subject with decisions that are to be concluded.
type unspent struct {
	limiter *Limiter
	subject string
	all     []Decision
	by      func(context.Context, Decision) error
	used    int64 // by all together
	settles bool
}

const perSubject = 4 // decisions of each subject

// takeUnspent takes for each kind of conclusion under each set of policies, with all the time
// that it needs. The decisions are concluded by limiters with the budget.
func takeUnspent(t *testing.T, rdb redis.UniversalClient, prefix string, budget time.Duration) (all []*unspent) {
	t.Helper()
	at := storetest.At(t, rdb, prefix)
	for name, policies := range concludable() {
		by := must(New(at, "owing", policies, closed(budget)))(t)
		for what, how := range concludes {
			o := &unspent{limiter: must(New(at, "owing", policies, closed(10*time.Second)))(t), subject: name + "/" + what}
			o.by, o.used, o.settles = how.by, perSubject*how.used, what != "refund"
			for range perSubject {
				d := must(o.limiter.TakeN(t.Context(), o.subject, 100))(t)
				if !d.Allowed {
					t.Fatalf("%s: got a denial, want all allowed", o.subject)
				}
				d.grant.of = by
				o.all = append(o.all, d)
			}
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
					if errors.Is(err, ErrSettle) || errors.Is(err, ErrRefund) {
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
func chargesWhatWasUsed(t *testing.T, all []*unspent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := all[0].limiter.remote.Store.Drain(ctx); err != nil {
		t.Error(err)
	}
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
		for _, d := range o.all {
			if c := d.grant.conclusion.Load(); c == nil || c.stage.Load() == concluding {
				t.Errorf("%s: got a decision that is still being concluded, want it over", o.subject)
			}
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
			all := takeUnspent(t, srv.Client(t), srv.Prefix(t), 50*time.Millisecond)
			srv.Pause(t)
			began := time.Now()
			failed := concludeAll(t, all)
			redistest.Await(t, time.Minute, "the stall", func() bool { return time.Since(began) > stall })
			srv.Resume(t)
			lapseAll(t, all)
			if chargesWhatWasUsed(t, all); failed == 0 {
				t.Error("no conclusion failed at first, want some that are repeated in the background")
			}
		})
	}
	t.Run("10s", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := bubble(t)
			all := takeUnspent(t, redistest.BubbleClient(t, m), "neap:stall", 50*time.Millisecond)
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
			chargesWhatWasUsed(t, all)
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
				l := must(New(storetest.At(t, rdb, srv.Prefix(t)), "cut", policies, closed(10*time.Second)))(t)
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
					o := &unspent{limiter: l, subject: fmt.Sprint(bytes), used: how.used, settles: what != "refund", all: []Decision{d}}
					chargesWhatWasUsed(t, []*unspent{o})
				}
				if bytes < 300 {
					t.Errorf("got %d bytes of a conclusion, want some hundreds", bytes)
				}
			})
		}
	}
}
