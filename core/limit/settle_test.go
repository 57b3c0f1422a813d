package limit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/token"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// settlable are the kinds of policies that can be settled.
var settlable = []kind{kindBucket, kindFast, kindWindow, kindSliding, kindCalendar, kindKept}

// indebted returns a random policy, with a MaxDebt if it can have one.
func indebted(rng *rand.Rand, k kind) Policy {
	most := rng.Int64N([]int64{1, 20, 2000}[rng.IntN(3)])
	switch p := randomPolicy(rng, k).(type) {
	case TokenBucket:
		p.MaxDebt = most
		return p
	case FixedWindow:
		p.MaxDebt = most
		return p
	case CalendarWindow:
		p.MaxDebt = most
		return p
	case keptOnChange:
		b := p.Policy.(TokenBucket)
		b.MaxDebt = most
		return KeepOnChange(b)
	default:
		return p
	}
}

// settle settles on both sides, and fails the test if they differ.
func (c *clocked) settle(tb testing.TB, p past, actual int64, at moment) (forgiven int64) {
	tb.Helper()
	once := &conclusion{grant: p.grant, actual: actual, token: token.New()}
	readings := make([]reading, len(c.rules))
	want := settleModel(c.rules, c.cells, c.now.UnixMicro(), p.grant, actual, at, readings)
	keys, args := c.remote.toConclude(once)
	if len(keys) == 1 { // all policies are shadows that denied
		return want
	}
	for try := range 2 { // the second finds the marker
		result, err := c.remote.runAt(tb.Context(), settleScript, c.remote.Inside.Node(tb.Context(), keys[0]), keys, args([]any{integer(at.soonest), integer(at.latest), "0"})...)
		if err != nil {
			tb.Fatal(err)
		}
		numbers := result.numbers
		if now, is := outside(numbers); is {
			c.seen(now)
			_, args = c.remote.toConclude(once)
			if result, err = c.remote.runAt(tb.Context(), settleScript, c.remote.Inside.Node(tb.Context(), keys[0]), keys, args([]any{integer(at.soonest), integer(at.latest), "0"})...); err != nil {
				tb.Fatal(err)
			}
			numbers = result.numbers
		}
		got, ok := once.readSettled(numbers)
		told := c.settlement(p.grant, slices.Clone(readings), want)
		same := ok && got.Forgiven == told.Forgiven
		if len(c.rules) == 1 {
			same = same && describe(got.After) == describe(told.After)
		}
		for i, r := range c.rules { // what is not settled is not read
			same = same && (!canSettle(r, p.grant.readings[i]) || stateAt(&got.After, i) == stateAt(&told.After, i))
		}
		if !same {
			tb.Fatalf("%s: call %d that settles %d taken %d µs ago as %+v to %d:\n got %s, %d forgiven, %t\nwant %s, %d forgiven",
				c.policies, try, p.grant.cost, c.now.UnixMicro()-p.at, at, actual, describe(got.After), got.Forgiven, ok, describe(told.After), told.Forgiven)
		}
	}
	c.take(tb, 0) // the states are compared
	return want
}

func stateAt(d *Decision, i int) State { return append([]State{d.first}, d.rest...)[i] }

// TestSettlesEqualModels mixes takes, pauses and settlements to more and to less, of
// decisions just made and of late ones.
func TestSettlesEqualModels(t *testing.T) {
	t.Parallel()
	const perPolicy = 100
	for _, k := range append(settlable, "set") {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			m, rdb := newServer(t)
			rng := redistest.Rand(t)
			forgiven, owing := 0, 0
			many := max(redistest.Steps(25_000)/perPolicy, 1)
			for i := 0; i < many || i < many+50 && (forgiven == 0 || owing == 0); i++ {
				policies := []Policy{indebted(rng, k)}
				if k == "set" {
					policies = []Policy{indebted(rng, settlable[rng.IntN(len(settlable))]), PerRequest(SlidingLog{Name: "log", Limit: 50, Window: time.Minute}), Shadow(indebted(rng, settlable[rng.IntN(len(settlable))]))}
					if policies[0].PolicyName() == policies[2].PolicyName() {
						continue
					}
				}
				c := newClocked(t, m, rdb, fmt.Sprintf("m%d", i), policies...)
				r := c.rules[0]
				step := time.Microsecond
				for _, r := range c.rules {
					step = max(step, grain(r))
				}
				var taken []past
				last := c.take(t, 0)
				for range perPolicy {
					c.pause(randomPause(rng, &last.first, step))
					if len(taken) > 0 && rng.IntN(3) == 0 {
						at := rng.IntN(len(taken))
						p := taken[at]
						taken = append(taken[:at], taken[at+1:]...)
						n := c.settle(t, p, rng.Int64N(3*p.grant.cost+3), moment{p.at, p.at})
						if n > 0 {
							forgiven++
						}
						if last = c.take(t, 0); last.Remaining == 0 {
							owing++
						}
						continue
					}
					last = c.take(t, randomCost(rng, r.id().limit))
					if last.Allowed && last.grant.cost > 0 {
						taken = append(taken, past{last.grant, c.now.UnixMicro()})
					}
				}
			}
			if forgiven == 0 || owing == 0 {
				t.Errorf("got %d settlements that forgave and %d that left nothing, want some", forgiven, owing)
			}
		})
	}
}

// forgetful is a client that loses every third reply of a settlement.
type forgetful struct {
	redis.UniversalClient

	calls, lost atomic.Int64
}

func (l *forgetful) Process(ctx context.Context, cmd redis.Cmder) error {
	err := l.UniversalClient.Process(ctx, cmd)
	if err == nil && strings.Contains(cmd.String(), settleScript.SHA()) && l.calls.Add(1)%3 == 0 {
		l.lost.Add(1)
		err = io.EOF
		cmd.SetErr(err)
	}
	return err
}

// TestSettlesAreExactWithLostReplies has 64 callers settle estimates to more and to less,
// and loses every third reply. In the end exactly what was used is charged. A bucket may
// keep one more, for what drains in a moment.
func TestSettlesAreExactWithLostReplies(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		client, kept := &forgetful{UniversalClient: rdb}, int64(1)
		for _, policy := range []Policy{
			FixedWindow{Limit: 200_000, Window: time.Hour, MaxDebt: 200_000},
			CalendarWindow{Limit: 200_000, Every: Month, MaxDebt: 200_000},
			TokenBucket{Rate: 1, Per: time.Hour, Burst: 200_000, MaxDebt: 200_000},
		} {
			l := must(New(storetest.At(t, client, prefix), "lost", []Policy{policy}, closed(20*time.Second)))(t)
			var used atomic.Int64
			seed := redistest.Seed(t)
			together(64, func(n int) {
				rng := rand.New(rand.NewPCG(seed, uint64(n)))
				for range 20 {
					d := must(l.TakeN(t.Context(), "s", 1+rng.Int64N(100)))(t)
					actual := rng.Int64N(200)
					if !d.Allowed {
						t.Error("a take: got a denial, want all allowed")
					}
					if s, err := d.Settle(t.Context(), actual); err != nil || s.Forgiven != 0 {
						t.Errorf("Settle: got %+v, %v, want it settled", s, err)
					}
					used.Add(actual)
				}
			})
			d := must(l.Peek(t.Context(), "s"))(t)
			if charged := 200_000 - d.Remaining; charged < used.Load() || charged > used.Load()+kept {
				t.Errorf("%s: got %d charged, want the %d that were used, and up to %d more", policy.PolicyName(), charged, used.Load(), kept)
			}
			if s := l.Stats(); s.Settled != 64*20 {
				t.Errorf("Stats: got %d settled, want %d", s.Settled, 64*20)
			}
		}
		if client.lost.Load() < 1000 {
			t.Errorf("this test needs lost replies: got %d, want at least 1,000", client.lost.Load())
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

// TestDebtDeniesUntilItIsGone: what was used beyond the estimate is owed, up to MaxDebt.
// The debt admits nothing meanwhile. What is beyond MaxDebt is forgiven.
func TestDebtDeniesUntilItIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := TokenBucket{Rate: 1000, Per: time.Minute, Burst: 1000, MaxDebt: 1000}
		for _, l := range []*Limiter{newTestLocal(t, nil, policy), inBubble(t, bubble(t), "tokens", policy)} {
			d := must(l.TakeN(t.Context(), "s", 100))(t)
			s := must(d.Settle(t.Context(), 1500))(t)
			if s.After.Remaining != 0 || s.After.Allowed || s.Forgiven != 0 || s.After.RetryAfter != 30060*time.Millisecond {
				t.Errorf("after Settle: got %+v, want a debt of 500, in which a permit is free after 30.06 s", s)
			}
			if d := must(l.Take(t.Context(), "s"))(t); d.Allowed || d.RetryAfter != s.After.RetryAfter {
				t.Errorf("while in debt: got %+v, want a denial for %v", d, s.After.RetryAfter)
			}
			time.Sleep(s.After.RetryAfter)
			d = must(l.Take(t.Context(), "s"))(t)
			if !d.Allowed {
				t.Errorf("after RetryAfter: got %+v, want it allowed", d)
			}
			if s := must(d.Settle(t.Context(), 5000))(t); s.Forgiven != 5000-1-1000 {
				t.Errorf("beyond MaxDebt: got %+v, want %d forgiven", s, 5000-1-1000)
			}
			if got := l.Stats(); got.Settled != 2 || got.Forgiven != 3999 {
				t.Errorf("after both: got stats %+v, want 2 settled and 3,999 forgiven", got)
			}
			time.Sleep(2 * time.Minute)
			if d := must(l.TakeN(t.Context(), "s", 1000))(t); !d.Allowed {
				t.Errorf("two minutes later: got %+v, want it allowed", d)
			}
		}
	})
}

// TestSettledOnce, however many copies there are, and never after or before a Refund.
func TestSettledOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policy := FixedWindow{Limit: 100, Window: time.Hour, MaxDebt: 50}
		for _, l := range []*Limiter{newTestLocal(t, nil, policy), inBubble(t, bubble(t), "once", policy)} {
			left := func(want int64) {
				t.Helper()
				if d := must(l.Peek(t.Context(), "s"))(t); d.Remaining != want {
					t.Errorf("after Settle: got %d left, want %d", d.Remaining, want)
				}
			}
			d := must(l.TakeN(t.Context(), "s", 10))(t)
			copied := d
			must(d.Settle(t.Context(), 4))(t)
			for what, err := range map[string]error{
				"again":     second(copied.Settle(t.Context(), 90)),
				"a refund":  d.Refund(t.Context()),
				"a peek":    second(new(must(l.Peek(t.Context(), "s"))(t)).Settle(t.Context(), 1)),
				"no grant":  second((&Decision{}).Settle(t.Context(), 1)),
				"below 0":   second(new(must(l.TakeN(t.Context(), "s", 0))(t)).Settle(t.Context(), -1)),
				"a denial":  second(new(must(l.TakeN(t.Context(), "s", 100))(t)).Settle(t.Context(), 1)),
				"a nil one": second((*Decision)(nil).Settle(t.Context(), 1)),
			} {
				if !errors.Is(err, ErrSettle) && !errors.Is(err, ErrRefund) {
					t.Errorf("%s: got %v, want ErrSettle or ErrRefund", what, err)
				}
			}
			left(96)
			d = must(l.TakeN(t.Context(), "s", 6))(t)
			if err := d.Refund(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := d.Settle(t.Context(), 3); !errors.Is(err, ErrSettle) {
				t.Errorf("Settle after a refund: got %v, want ErrSettle", err)
			}
			left(96)
			nothing := must(l.TakeN(t.Context(), "s", 0))(t)
			must(nothing.Settle(t.Context(), 7))(t) // paid afterwards
			left(89)
			rolled := must(l.TakeN(t.Context(), "s", 9))(t)
			time.Sleep(time.Hour)
			must(rolled.Settle(t.Context(), 12))(t) // the excess charges the current window
			left(97)
		}
	})
}

// TestSettledOnceByMany callers at the same time, in process, where they compete for its
// mutex.
func TestSettledOnceByMany(t *testing.T) {
	t.Parallel()
	l := newTestLocal(t, nil, FixedWindow{Limit: 100, Window: time.Hour, MaxDebt: 50})
	for range 20 {
		must(l.Reset(t.Context(), "s"))(t)
		d := must(l.Take(t.Context(), "s"))(t)
		var came, settled atomic.Int64
		l.local.mu.Lock()
		unlock := sync.OnceFunc(l.local.mu.Unlock)
		go func() {
			for came.Load() < 64 {
				runtime.Gosched()
			}
			unlock()
		}()
		together(64, func(int) {
			came.Add(1)
			if _, err := d.Settle(t.Context(), 2); err == nil {
				settled.Add(1)
			} else if !errors.Is(err, ErrSettle) {
				t.Error(err)
			}
		})
		if p := must(l.Peek(t.Context(), "s"))(t); p.Remaining != 98 || settled.Load() != 1 {
			t.Fatalf("one decision settled by many callers: got %d left and %d settlements, want 98 and 1", p.Remaining, settled.Load())
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestWhatCannotBeSettled is refused with the remedy.
func TestWhatCannotBeSettled(t *testing.T) {
	t.Parallel()
	log := newTestLocal(t, nil, SlidingLog{Limit: 9, Window: time.Hour})
	if _, err := new(must(log.Take(t.Context(), "s"))(t)).Settle(t.Context(), 2); !errors.Is(err, ErrSettle) || !strings.Contains(err.Error(), "PerRequest") {
		t.Errorf("a decision of a log: got %v, want ErrSettle and the remedy", err)
	}
	beside := newTestLocal(t, nil, FixedWindow{Limit: 9, Window: time.Hour, Unit: "tokens"}, PerRequest(SlidingLog{Limit: 9, Window: time.Hour}))
	if _, err := new(must(beside.Take(t.Context(), "s"))(t)).Settle(t.Context(), 2); err != nil {
		t.Errorf("a log that counts requests: got %v, want no error", err)
	}
	for field, p := range map[string]Policy{
		"MaxDebt is -1: use": FixedWindow{Limit: 9, Window: time.Hour, MaxDebt: -1},
		"below 2^52":         FixedWindow{Limit: 9, Window: time.Hour, MaxDebt: 1 << 60},
		"MaxDebt are":        TokenBucket{Rate: 9, Per: time.Hour, MaxDebt: 1 << 60},
	} {
		if _, err := NewLocal("test", []Policy{p}, nil); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: got %v, want %q in it", p, err, field)
		}
	}
	for _, p := range []Policy{PerRequest(FixedWindow{Limit: 9, Window: time.Hour}), FixedWindow{Limit: 9, Window: time.Hour, MaxDebt: 2}} {
		if _, err := NewLocal("test", []Policy{p}, &Options{Prepaid: Prepaid{Most: 10}}); err == nil || !strings.Contains(err.Error(), "cannot be Prepaid") {
			t.Errorf("%+v beside Prepaid: got %v, want that it cannot be", p, err)
		}
	}
}

// TestPerRequestCountsRequests beside a policy that counts their cost, on Redis and in process.
func TestPerRequestCountsRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policies := []Policy{
			FixedWindow{Name: "tokens", Limit: 1000, Window: time.Hour, Unit: "tokens", MaxDebt: 100},
			PerRequest(FixedWindow{Name: "requests", Limit: 3, Window: time.Hour}),
			PerRequest(SlidingLog{Name: "log", Limit: 4, Window: time.Hour}),
		}
		for _, l := range []*Limiter{newTestLocal(t, nil, policies...), inBubble(t, bubble(t), "once", policies...)} {
			used := func(d Decision, binding string, tokens, requests int64) {
				t.Helper()
				if d.Policy != binding {
					t.Errorf("with %d tokens and %d requests: got %q as the policy that binds, want %q", tokens, requests, d.Policy, binding)
				}
				for s := range d.States() {
					want := map[string]int64{"tokens": 1000 - tokens, "requests": 3 - requests, "log": 4 - requests}[s.Policy]
					if s.Remaining != want {
						t.Errorf("policy %s: got %d left, want %d", s.Policy, s.Remaining, want)
					}
				}
			}
			d := must(l.TakeN(t.Context(), "s", 200))(t)
			used(d, "requests", 200, 1)
			used(must(d.Settle(t.Context(), 300))(t).After, "requests", 300, 1)
			used(must(l.TakeN(t.Context(), "s", 0))(t), "requests", 300, 1)
			d = must(l.TakeN(t.Context(), "s", 500))(t)
			used(d, "tokens", 800, 2) // 200 tokens admit no more of 500, though 1 request is left
			if err := d.Refund(t.Context()); err != nil {
				t.Fatal(err)
			}
			used(must(l.Peek(t.Context(), "s"))(t), "requests", 300, 1)
			for range 2 {
				must(l.TakeN(t.Context(), "s", 100))(t)
			}
			if d := must(l.TakeN(t.Context(), "s", 100))(t); d.Allowed || d.Policy != "requests" {
				t.Errorf("a fourth request: got %+v, want a denial by the requests", d)
			}
			if d := must(l.PeekN(t.Context(), "s", 100))(t); d.Allowed || d.Policy != "requests" {
				t.Errorf("a peek of a fourth request: got %+v, want a denial by the requests", d)
			}
		}
	})
}

// TestForgivenIsExact where permits in units are above 2^53.
func TestForgivenIsExact(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const burst = 260_000
		for name, p := range map[string]Policy{
			"bucket": TokenBucket{Rate: 10, Per: 24 * time.Hour, Burst: burst},
			"kept":   KeepOnChange(TokenBucket{Name: "kept", Rate: 10, Per: 24 * time.Hour, Burst: burst}),
		} {
			l := must(New(storetest.At(t, rdb, prefix), name, []Policy{p}, closed(10*time.Second)))(t)
			for i := range int64(64) {
				actual := int64(exact) - i*i*(1<<40+1)
				d := must(l.Take(t.Context(), fmt.Sprint("s", i)))(t)
				if s, err := d.Settle(t.Context(), actual); err != nil || s.Forgiven != actual-burst {
					t.Errorf("%s, settled to %d: got %d forgiven, %v, want %d", name, actual, s.Forgiven, err, actual-burst)
				}
			}
		}
	})
}
