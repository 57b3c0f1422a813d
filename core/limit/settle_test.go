package limit_test

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

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// forgetful is a client that loses every third reply of a settlement.
type forgetful struct {
	redis.UniversalClient

	calls, lost atomic.Int64
}

func (l *forgetful) Process(ctx context.Context, cmd redis.Cmder) error {
	err := l.UniversalClient.Process(ctx, cmd)
	if err == nil && runs(cmd, "limit_settle(") && l.calls.Add(1)%3 == 0 {
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
		for _, policy := range []limit.Policy{
			limit.FixedWindow{Limit: 200_000, Window: time.Hour, MaxDebt: 200_000},
			limit.CalendarWindow{Limit: 200_000, Every: limit.Month, MaxDebt: 200_000},
			limit.TokenBucket{Rate: 1, Per: time.Hour, Burst: 200_000, MaxDebt: 200_000},
		} {
			l := must(limit.New(storetest.At(t, client, prefix), "lost", []limit.Policy{policy}, closed(patience)))(t)
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
		policy := limit.TokenBucket{Rate: 1000, Per: time.Minute, Burst: 1000, MaxDebt: 1000}
		for _, l := range []*limit.Limiter{newTestLocal(t, nil, policy), inBubble(t, redistest.Bubble(t), "tokens", policy)} {
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
		policy := limit.FixedWindow{Limit: 100, Window: time.Hour, MaxDebt: 50}
		for _, l := range []*limit.Limiter{newTestLocal(t, nil, policy), inBubble(t, redistest.Bubble(t), "once", policy)} {
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
				"no grant":  second((&limit.Decision{}).Settle(t.Context(), 1)),
				"below 0":   second(new(must(l.TakeN(t.Context(), "s", 0))(t)).Settle(t.Context(), -1)),
				"a denial":  second(new(must(l.TakeN(t.Context(), "s", 100))(t)).Settle(t.Context(), 1)),
				"a nil one": second((*limit.Decision)(nil).Settle(t.Context(), 1)),
			} {
				if !errors.Is(err, limit.ErrSettle) && !errors.Is(err, limit.ErrRefund) {
					t.Errorf("%s: got %v, want ErrSettle or ErrRefund", what, err)
				}
			}
			left(96)
			d = must(l.TakeN(t.Context(), "s", 6))(t)
			if err := d.Refund(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := d.Settle(t.Context(), 3); !errors.Is(err, limit.ErrSettle) {
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

// TestWhatCannotBeSettled is refused with the remedy.
func TestWhatCannotBeSettled(t *testing.T) {
	t.Parallel()
	log := newTestLocal(t, nil, limit.SlidingLog{Limit: 9, Window: time.Hour})
	if _, err := new(must(log.Take(t.Context(), "s"))(t)).Settle(t.Context(), 2); !errors.Is(err, limit.ErrSettle) || !strings.Contains(err.Error(), "PerRequest") {
		t.Errorf("a decision of a log: got %v, want ErrSettle and the remedy", err)
	}
	beside := newTestLocal(t, nil, limit.FixedWindow{Limit: 9, Window: time.Hour, Unit: "tokens"}, limit.PerRequest(limit.SlidingLog{Limit: 9, Window: time.Hour}))
	if _, err := new(must(beside.Take(t.Context(), "s"))(t)).Settle(t.Context(), 2); err != nil {
		t.Errorf("a log that counts requests: got %v, want no error", err)
	}
	for field, p := range map[string]limit.Policy{
		"MaxDebt is -1: use": limit.FixedWindow{Limit: 9, Window: time.Hour, MaxDebt: -1},
		"below 2^52":         limit.FixedWindow{Limit: 9, Window: time.Hour, MaxDebt: 1 << 60},
		"MaxDebt are":        limit.TokenBucket{Rate: 9, Per: time.Hour, MaxDebt: 1 << 60},
	} {
		if _, err := limit.NewLocal("test", []limit.Policy{p}, nil); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: got %v, want %q in it", p, err, field)
		}
	}
	for _, p := range []limit.Policy{limit.PerRequest(limit.FixedWindow{Limit: 9, Window: time.Hour}), limit.FixedWindow{Limit: 9, Window: time.Hour, MaxDebt: 2}} {
		if _, err := limit.NewLocal("test", []limit.Policy{p}, &limit.Options{Prepaid: limit.Prepaid{Most: 10}}); err == nil || !strings.Contains(err.Error(), "cannot be Prepaid") {
			t.Errorf("%+v beside Prepaid: got %v, want that it cannot be", p, err)
		}
	}
}

// TestPerRequestCountsRequests beside a policy that counts their cost, on Redis and in process.
func TestPerRequestCountsRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policies := []limit.Policy{
			limit.FixedWindow{Name: "tokens", Limit: 1000, Window: time.Hour, Unit: "tokens", MaxDebt: 100},
			limit.PerRequest(limit.FixedWindow{Name: "requests", Limit: 3, Window: time.Hour}),
			limit.PerRequest(limit.SlidingLog{Name: "log", Limit: 4, Window: time.Hour}),
		}
		for _, l := range []*limit.Limiter{newTestLocal(t, nil, policies...), inBubble(t, redistest.Bubble(t), "once", policies...)} {
			used := func(d limit.Decision, binding string, tokens, requests int64) {
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

// TestALateSettlement tells that a window of requests, which it does not settle, is over.
func TestALateSettlement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for i, short := range []limit.Policy{
			limit.TokenBucket{Name: "requests", Rate: 3, Per: time.Second},
			limit.KeepOnChange(limit.TokenBucket{Name: "requests", Rate: 3, Per: time.Second}),
			limit.FixedWindow{Name: "requests", Limit: 3, Window: time.Second},
			limit.SlidingWindow{Name: "requests", Limit: 3, Window: time.Second},
			limit.CalendarWindow{Name: "requests", Limit: 3, Every: limit.Hour},
		} {
			policies := []limit.Policy{limit.FixedWindow{Name: "tokens", Limit: 1000, Window: 24 * time.Hour}, limit.PerRequest(short)}
			for _, l := range []*limit.Limiter{newTestLocal(t, nil, policies...), inBubble(t, redistest.Bubble(t), fmt.Sprint(i), policies...)} {
				d := take(t, l, "s", 100)
				time.Sleep(3 * time.Hour)
				settled := must(d.Settle(t.Context(), 200))(t)
				for s := range settled.After.States() {
					if s.Policy == "requests" && (s.Remaining != 3 || s.ResetAfter != 0 || s.NextAfter != 0) {
						t.Errorf("%T, three hours later: got %+v, want all 3 left", short, s)
					}
				}
			}
		}
	})
}

// TestForgivenIsExact where permits in units are above 2^53.
func TestForgivenIsExact(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const burst = 260_000
		for name, p := range map[string]limit.Policy{
			"bucket": limit.TokenBucket{Rate: 10, Per: 24 * time.Hour, Burst: burst},
			"kept":   limit.KeepOnChange(limit.TokenBucket{Name: "kept", Rate: 10, Per: 24 * time.Hour, Burst: burst}),
		} {
			l := must(limit.New(storetest.At(t, rdb, prefix), name, []limit.Policy{p}, closed(patience)))(t)
			for i := range int64(64) {
				actual := int64(1<<53) - i*i*(1<<40+1)
				d := must(l.Take(t.Context(), fmt.Sprint("s", i)))(t)
				if s, err := d.Settle(t.Context(), actual); err != nil || s.Forgiven != actual-burst {
					t.Errorf("%s, settled to %d: got %d forgiven, %v, want %d", name, actual, s.Forgiven, err, actual-burst)
				}
			}
		}
	})
}

// TestEstimatesOfManyCallersComeBack has 64 callers settle estimates or abandon them, and
// lose every third reply of a settlement. After the leases have ended, exactly what was
// used is charged.
func TestEstimatesOfManyCallersComeBack(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		const most, callers, each = 1_000_000, 64, 4
		client := &forgetful{UniversalClient: rdb}
		policies := []limit.Policy{
			limit.WithLease(limit.FixedWindow{Name: "w", Limit: most, Window: time.Hour, MaxDebt: most}, 2*time.Second),
			limit.WithLease(limit.CalendarWindow{Name: "c", Limit: most, Every: limit.Month, MaxDebt: most}, time.Second),
		}
		l := must(limit.New(storetest.At(t, client, prefix), "many", policies, closed(time.Minute)))(t)
		rng := redistest.Rand(t)
		costs := make([][each][2]int64, callers)
		used := int64(0)
		for i := range costs {
			for j := range costs[i] {
				costs[i][j] = [2]int64{1 + rng.Int64N(100), rng.Int64N(200) - 50}
				used += max(costs[i][j][1], 0)
			}
		}
		var wg sync.WaitGroup
		for _, own := range costs {
			wg.Go(func() {
				for _, c := range own {
					d, err := l.TakeN(context.Background(), "s", c[0])
					if err != nil || !d.Allowed {
						t.Errorf("a take by many callers: got %v, %v, want a grant", d.Allowed, err)
						return
					}
					if c[1] < 0 {
						continue // a crash
					}
					if _, err := d.Settle(context.Background(), c[1]); err != nil {
						t.Errorf("Settle of an estimate: got %v, want no error", err)
					}
				}
			})
		}
		wg.Wait()
		var d limit.Decision
		polls := 0
		defer func() {
			if t.Failed() {
				t.Logf("%d used; after %d polls got %v", used, polls, slices.Collect(d.States()))
			}
		}()
		redistest.Await(t, 60*time.Second, "the estimates to come back", func() bool {
			if polls%100 == 0 {
				runtime.GC() // ends the renewals
			}
			d = tried(t, l, most)
			polls++
			return !d.Allowed && viewOf(d).States[0].Remaining == most-used && viewOf(d).States[1].Remaining == most-used
		})
		if client.lost.Load() == 0 {
			t.Error("got no lost reply, want some")
		}
	})
}
