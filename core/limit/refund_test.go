package limit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// slow are policies that free nothing by themselves while a test runs.
var slow = []Policy{
	TokenBucket{Name: "bucket", Rate: 1, Per: time.Hour, Burst: 100},
	FixedWindow{Name: "window", Limit: 100, Window: time.Hour},
	SlidingWindow{Name: "sliding", Limit: 100, Window: time.Hour},
	SlidingLog{Name: "log", Limit: 100, Window: time.Hour},
}

// TestRefundGivesBackOnce takes and refunds under each policy alone, and under all of
// them.
func TestRefundGivesBackOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for i, policies := range append(each(slow), slow) {
			refundsOnce(t, must(New(storetest.At(t, rdb, prefix), fmt.Sprintf("once%d", i), policies, closed(10*time.Second)))(t))
			for _, key := range redistest.KeysOf(t, admin, prefix) {
				if !strings.Contains(key, ":settled:") {
					t.Errorf("%d policies: got the key %q left, want none but markers", len(policies), key)
				}
			}
		}
	})
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		for _, policies := range append(each(slow), slow) {
			l := must(NewLocal("once", policies, nil))(t)
			refundsOnce(t, l)
			if l.local.entries != 0 {
				t.Errorf("got %d entries of logs counted, want 0", l.local.entries)
			}
		}
	})
}

// wantRemaining waits until so many permits remain for the subject "s" under each policy: a
// refund to a bucket keeps what drains in a moment.
func wantRemaining(t *testing.T, l *Limiter, want int64, when string) {
	t.Helper()
	var d Decision
	defer func() {
		if t.Failed() {
			t.Logf("%s: got %s", when, describe(d))
		}
	}()
	redistest.Await(t, 30*time.Second, fmt.Sprintf("%d permits to remain under each policy %s", want, when), func() bool {
		var err error
		d, err = l.Peek(t.Context(), "s")
		if err != nil {
			t.Fatalf("a peek %s: got %v, want no error", when, err)
		}
		for s := range d.States() {
			if s.Remaining != want {
				return false
			}
		}
		return true
	})
}

func refundsOnce(t *testing.T, l *Limiter) {
	t.Helper()
	ctx := t.Context()
	remaining := func(want int64) {
		t.Helper()
		wantRemaining(t, l, want, "")
	}
	take := func(cost int64) Decision {
		t.Helper()
		return must(l.TakeN(ctx, "s", cost))(t)
	}
	first := take(7)
	second := take(20)
	remaining(73)
	if err := first.Refund(ctx); err != nil {
		t.Errorf("the first refund, by %s: got %v, want no error", first.Policy, err)
	}
	remaining(80)
	for range 2 {
		if err := first.Refund(ctx); !errors.Is(err, ErrRefund) {
			t.Errorf("the first refund again: got %v, want ErrRefund", err)
		}
	}
	remaining(80)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := second.Refund(ended); err != nil {
		t.Errorf("a refund with a canceled context: got %v, want no error", err)
	}
	remaining(100)

	all := take(100)
	denied := take(1)
	peek, err := l.Peek(ctx, "s")
	if err != nil || denied.Allowed {
		t.Fatalf("a take and a peek when all is taken: got %+v, %v, want a denial and no error", denied, err)
	}
	for what, err := range map[string]error{
		"denied":             denied.Refund(ctx),
		"a peek":             peek.Refund(ctx),
		"the zero Decision":  (&Decision{}).Refund(ctx),
		"a nil one":          (*Decision)(nil).Refund(ctx),
		"made to look right": (&Decision{Allowed: true}).Refund(ctx),
	} {
		if !errors.Is(err, ErrRefund) || err.Error() == ErrRefund.Error() {
			t.Errorf("a refund (%s): got %v, want ErrRefund with its reason", what, err)
		}
	}
	free := take(0)
	if err := free.Refund(ctx); err != nil {
		t.Errorf("the refund of a cost of 0: got %v, want no error", err)
	}
	remaining(0)
	must(l.Reset(ctx, "s"))(t)
	if err := all.Refund(ctx); !errors.Is(err, ErrRefund) {
		t.Errorf("a refund after a reset: got %v, want ErrRefund", err)
	}
	remaining(100)
	if got := l.Stats().Refunded; got != 2 {
		t.Errorf("got %d refunds counted, want 2", got)
	}
}

// inBubble returns a limiter on a miniredis that shares the clock of the bubble.
func inBubble(t *testing.T, m *miniredis.Miniredis, name string, policies ...Policy) *Limiter {
	t.Helper()
	return must(New(redistest.BubbleClient(t, m), name, policies, &Options{Fail: store.FailClosed}))(t)
}

// bubble returns a miniredis that runs by the clock of the bubble.
func bubble(t *testing.T) *miniredis.Miniredis {
	t.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	t.Cleanup(m.Close)
	return m
}

// TestRefundByTheClock does the same with a limiter on Redis and with one in process, on
// one clock: refunds of earlier decisions, late ones and copies. Both give back the same.
// For a bucket, which drains, Redis never gives back more. It may keep what drains in a
// thousandth of the time, by which clocks may differ.
func TestRefundByTheClock(t *testing.T) { //nolint:tparallel // what they have met is counted when all have ended
	t.Parallel()
	var met redistest.Coverage
	t.Run("of", func(t *testing.T) {
		for _, k := range append(slices.Clip(kinds), "set") {
			t.Run(string(k), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { met.Add(refundsByTheClock(t, k)) })
			})
		}
	})
	met.Want(t, 1, "given back", "too late")
}

func refundsByTheClock(t *testing.T, k kind) map[string]int {
	t.Helper()
	rng := redistest.Rand(t)
	m := bubble(t)
	late, given := 0, 0
	for i := range max(redistest.Steps(100_000/len(kinds))/100, 1) {
		policies := []Policy{randomPolicy(rng, k)}
		if k == "set" {
			policies = randomSet(rng, 2+i%2)
		}
		far := inBubble(t, m, fmt.Sprintf("n%d", i), policies...)
		g, l := sideBySide(t, rng, far, must(NewLocal("near", policies, nil))(t))
		given, late = given+g, late+l
	}
	return map[string]int{"given back": given, "too late": late}
}

func sideBySide(t *testing.T, rng *rand.Rand, far, near *Limiter) (given, late int) {
	t.Helper()
	type pair struct{ far, near Decision }
	var made []pair
	most, step, exact, windowed := far.rules[0].id().limit, time.Millisecond, true, false
	for _, r := range far.rules {
		most, step = min(most, r.id().limit), max(step, grain(r))
		switch r.(type) {
		case *bucket, *keptBucket:
			exact = false
		case *window, *sliding:
			windowed = true
		}
		exact = exact && r.state(reading{}, 0).Window > 50*time.Millisecond
	}
	time.Sleep(step - time.Duration(time.Now().UnixNano())%step)
	refunded, parted := false, false
	for op := range 100 {
		subject := fmt.Sprint(op / 10) // where the two part, they part only there
		if op%10 == 0 {
			made, refunded, parted = nil, false, false
		}
		if parted {
			continue
		}
		if len(made) > 0 && (exact || !refunded) && rng.IntN(3) == 0 {
			refunded = true
			p := made[rng.IntN(len(made))]
			one, other := p.far.Refund(t.Context()), p.near.Refund(t.Context())
			if one == nil && other != nil || exact && (one == nil) != (other == nil) {
				t.Fatalf("%+v: a refund: got %v on Redis, %v in process, want both alike (if not %t, less on Redis)",
					far.rules[0], one, other, exact)
			}
			if given++; one != nil {
				given, late = given-1, late+1
			}
			compare(t, far, near, subject, exact)
			// The next window of a subject with nothing left begins anew.
			parted = windowed && one != nil && other == nil
			continue
		}
		cost := randomCost(rng, most)
		a := must(far.TakeN(t.Context(), subject, cost))(t)
		if a.Allowed { // where Redis has kept more it may deny more
			b, err := near.TakeN(t.Context(), subject, cost)
			if err != nil || !b.Allowed {
				t.Fatalf("a take that Redis admits: got %+v, %v in process, want it allowed", b, err)
			}
			made = append(made, pair{a, b})
		}
		if pause := randomPause(rng, &a.first, step); pause < 1000*24*time.Hour {
			time.Sleep(pause)
		}
	}
	return given, late
}

func compare(t *testing.T, far, near *Limiter, subject string, exact bool) {
	t.Helper()
	a, err := far.Peek(t.Context(), subject)
	b, fault := near.Peek(t.Context(), subject)
	if err != nil || fault != nil {
		t.Fatalf("two peeks: got %v on Redis and %v in process, want no error", err, fault)
	}
	if exact && describe(a) != describe(b) || a.Remaining > b.Remaining {
		t.Fatalf("%+v: after a refund: got on Redis\n%s\nwant no more remaining, and (if %t) all as in process\n%s",
			far.rules[0], describe(a), exact, describe(b))
	}
}

// TestHundredSuccessesThatEndTogether: what they took is given back, and no more attempts
// than the limit are ever admitted.
func TestHundredSuccessesThatEndTogether(t *testing.T) {
	t.Parallel()
	redistest.EachReal(t, func(t *testing.T, connect func() redis.UniversalClient, prefix string) {
		rdb := connect()
		for i, policies := range append(each(slow), slow) {
			l := must(New(storetest.At(t, rdb, prefix), fmt.Sprintf("together%d", i), policies, closed(20*time.Second)))(t)
			logins := make([]Decision, 100)
			together(len(logins), func(n int) {
				d, err := l.Take(t.Context(), "client")
				if err != nil || !d.Allowed {
					t.Errorf("%s: a take: got %+v, %v, want it allowed", policies[0].PolicyName(), d, err)
				}
				logins[n] = d
			})
			together(len(logins), func(n int) {
				if err := logins[n].Refund(t.Context()); err != nil {
					t.Errorf("%s: a refund: got %v, want no error", policies[0].PolicyName(), err)
				}
			})
			together(len(logins), func(n int) {
				if err := logins[n].Refund(t.Context()); !errors.Is(err, ErrRefund) {
					t.Errorf("%s: a refund again: got %v, want ErrRefund", policies[0].PolicyName(), err)
				}
			})
			// A refund to a bucket keeps what drains in a thousandth of the time since it
			// was taken; a moment later that has drained.
			redistest.Await(t, time.Minute, "all to be given back to "+policies[0].PolicyName(), func() bool {
				d, err := l.Peek(t.Context(), "client")
				return err == nil && d.Remaining == 100
			})
			var admitted atomic.Int64
			together(150, func(int) {
				d, err := l.Take(t.Context(), "client")
				if err != nil {
					t.Errorf("a take after the refunds: got %v, want no error", err)
				}
				if d.Allowed {
					admitted.Add(1)
				}
			})
			if got := admitted.Load(); got != 100 {
				t.Errorf("%s: got %d failures admitted, want 100", policies[0].PolicyName(), got)
			}
		}
	})
}

func together(n int, do func(int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// TestSuccessesThatEndAfterTheirWindow give nothing to the next one.
func TestSuccessesThatEndAfterTheirWindow(t *testing.T) {
	t.Parallel()
	for _, policy := range []Policy{
		FixedWindow{Limit: 3, Window: 30 * time.Second},
		SlidingWindow{Limit: 3, Window: 15 * time.Second},
		SlidingLog{Limit: 3, Window: 30 * time.Second},
		TokenBucket{Rate: 1, Per: 10 * time.Second, Burst: 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			near := must(NewLocal("login", []Policy{policy}, nil))(t)
			for _, l := range []*Limiter{near, inBubble(t, bubble(t), "login", policy)} {
				take := func(want bool) Decision {
					t.Helper()
					d, err := l.Take(t.Context(), "client")
					if err != nil || d.Allowed != want {
						t.Fatalf("%s: a take: got %+v, %v, want allowed %t", policy.PolicyName(), d, err, want)
					}
					return d
				}
				slow := []Decision{take(true), take(true), take(true)}
				time.Sleep(15 * time.Second)
				if err := slow[2].Refund(t.Context()); err != nil {
					t.Errorf("%s: a refund in time: got %v, want no error", policy.PolicyName(), err)
				}
				time.Sleep(16 * time.Second)
				for range 3 {
					take(true)
				}
				take(false)
				for _, d := range slow {
					if err := d.Refund(t.Context()); !errors.Is(err, ErrRefund) {
						t.Errorf("%s: a late refund: got %v, want ErrRefund", policy.PolicyName(), err)
					}
				}
				take(false)
			}
		})
	}
}

// TestRefundThatAStalledServerRunsLate: it changes nothing, because what it would give
// back has drained by then, and what is there belongs to other decisions.
func TestRefundThatAStalledServerRunsLate(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	admin := srv.Admin(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
	for _, rate := range []int64{10, 2000} { // on PTTL and on TIME
		bucket := TokenBucket{Rate: rate, Per: time.Second, Burst: 100 * rate}
		l := must(New(storetest.At(t, srv.Client(t), prefix), "stalled", []Policy{bucket}, closed(500*time.Millisecond)))(t)
		decision := func(what string, cost int64) (d Decision) {
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
		others := decision("a decision on somebody else", 20*rate)
		calls := redistest.CommandStats(t, admin)["evalsha"].Calls
		srv.Pause(t)
		if err := early.Refund(t.Context()); !errors.Is(err, script.ErrMaybeExecuted) {
			t.Errorf("rate %d: a refund to a stopped server: got %v, want ErrMaybeExecuted", rate, err)
		}
		redistest.Await(t, 20*time.Second, "what it took to have drained", func() bool {
			return time.Since(others.grant.answered) > time.Second
		})
		srv.Resume(t)
		redistest.Await(t, 20*time.Second, "the refund to have run", func() bool {
			return redistest.CommandStats(t, admin)["evalsha"].Calls > calls
		})
		d := decision("what remains", 0)
		drained := int64(d.grant.answered.Sub(others.grant.asked)*time.Duration(rate)/time.Second) + rate/10 + 1
		if free := d.Remaining - others.Remaining; free > drained {
			t.Errorf("rate %d: got %d more remaining, want at most the %d that have drained", rate, free, drained)
		}
		if err := early.Refund(t.Context()); !errors.Is(err, ErrRefund) {
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
		l := must(New(storetest.At(t, rdb, srv.Prefix(t)), fmt.Sprintf("lost%d", i), policies, closed(10*time.Second)))(t)
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
		if err := d.Refund(t.Context()); !errors.Is(err, ErrRefund) {
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

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// TestRefundThatDidNotRunMayBeTriedAgain, if Redis itself says that it did not run.
func TestRefundThatDidNotRunMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	_, rdb := newServer(t)
	away := &refusing{Client: rdb}
	l := must(New(away, "away", slow, closed(5*time.Second)))(t)
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
		if err := d.Refund(t.Context()); err != nil && !errors.Is(err, ErrRefund) { // which it is if the background came first
			t.Errorf("clock known %v: the refund when Redis is back: got %v, want no error, or ErrRefund", known, err)
		}
	}
	if err := l.remote.Store.Drain(t.Context()); err != nil || l.Stats().Refunded != 2 {
		t.Errorf("got %d refunded, %v, want 2", l.Stats().Refunded, err)
	}
}

// TestRefundOfDegradedDecisions: what was decided in process is given back in process,
// and FailOpen has taken nothing.
func TestRefundOfDegradedDecisions(t *testing.T) {
	t.Parallel()
	_, rdb := newServer(t)
	away := &refusing{Client: rdb}
	text := "LOADING Redis is loading the dataset in memory"
	away.with.Store(&text)
	for _, mode := range []store.FailMode{store.FailLocal, store.FailOpen} {
		l := must(New(away, "degraded", slow, &Options{Fail: mode, Budget: 5 * time.Millisecond}))(t)
		d, err := l.TakeN(t.Context(), "s", 100)
		if err != nil || !d.Degraded {
			t.Fatalf("%v: a take while Redis is away: got %+v, %v, want it degraded", mode, d, err)
		}
		if err := d.Refund(t.Context()); err != nil {
			t.Errorf("%v: the refund of a degraded decision: got %v, want no error", mode, err)
		}
		if err := d.Refund(t.Context()); !errors.Is(err, ErrRefund) {
			t.Errorf("%v: the refund again: got %v, want ErrRefund", mode, err)
		}
		if d, err := l.TakeN(t.Context(), "s", 100); err != nil || !d.Allowed {
			t.Errorf("%v: a take of all permits after the refund: got %+v, %v, want it allowed", mode, d, err)
		}
	}
}
