package limit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/lua"
)

// TestAllEqualsAsking compares All with peeks at each limiter in turn and takes if all
// would grant: on Redis and in process, over random policies.
func TestAllEqualsAsking(t *testing.T) {
	t.Parallel()
	rng := redistest.Rand(t)
	denied, given := 0, 0
	for run := range max(redistest.Steps(100_000)/100, 1) {
		synctest.Test(t, func(t *testing.T) {
			m := redistest.Bubble(t)
			var asks, oracle []limit.Ask
			var most []int64
			for i := range 2 + rng.IntN(2) {
				kind := lua.Kinds[rng.IntN(len(lua.Kinds))]
				s := lasting(rng, specOf(rng, kind, random))
				p := s.policy()
				alike := newTestLocal(t, nil, p)
				l := newTestLocal(t, nil, p)
				most = append(most, s.most())
				if !limit.Kinds[kind].Drains && run%2 == 0 { // see TestAllGivesBackToABucket
					l = inBubble(t, m, fmt.Sprint("all", i), p)
				}
				asks, oracle = append(asks, limit.Ask{Limiter: l}), append(oracle, limit.Ask{Limiter: alike})
			}
			for range 100 {
				for i := range asks {
					asks[i].Subject, asks[i].Cost = fmt.Sprint("s", rng.IntN(2)), max(1, randomCost(rng, most[i]))
					oracle[i].Subject, oracle[i].Cost = asks[i].Subject, asks[i].Cost
				}
				got := must(limit.All(t.Context(), asks...))(t)
				if got.Kept != nil {
					t.Fatalf("what All could not give back: got %v, want nothing", got.Kept)
				}
				want, longest, tightest := true, time.Duration(0), int64(1<<62)
				for _, o := range oracle {
					d := must(o.Limiter.PeekN(t.Context(), o.Subject, o.Cost))(t)
					want, longest = want && d.Allowed, max(longest, d.RetryAfter)
				}
				for i, o := range oracle {
					if want {
						tightest = min(tightest, must(o.Limiter.TakeN(t.Context(), o.Subject, o.Cost))(t).Remaining/o.Cost)
					}
					a, b := must(asks[i].Limiter.Peek(t.Context(), o.Subject))(t), must(o.Limiter.Peek(t.Context(), o.Subject))(t)
					if a.Remaining != b.Remaining {
						t.Fatalf("%v: after ask %d: got %d permits left, want %d", asks, i, a.Remaining, b.Remaining)
					}
				}
				binding := got.Decision()
				if got.Allowed != want || want && binding.Remaining/asks[got.Binds].Cost != tightest || !want && (binding.Allowed || binding.RetryAfter > longest) {
					t.Fatalf("%v: got %+v, want allowed %t, RetryAfter at most %v, and %d more such requests", asks, got, want, longest, tightest)
				}
				if !want {
					denied++
				}
				for _, d := range got.Decisions {
					if !d.Allowed && d.RetryAfter > binding.RetryAfter {
						t.Fatalf("%v: got %+v as the one that binds, want the denial that lasts longest: %+v", asks, binding, d)
					}
					if !want && d.Allowed {
						given++
					}
				}
				time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
			}
		})
	}
	if denied == 0 || given == 0 {
		t.Errorf("got %d denials and %d decisions that were given back, want some of both", denied, given)
	}
}

// TestAllIsExactUnderContention has 64 callers on a real server and on a cluster whose
// nodes have a limit each. Three plans share one total, and two users share a plan.
func TestAllIsExactUnderContention(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		st := storetest.At(t, rdb, prefix)
		made := func(name string, most int64) *limit.Limiter {
			return must(limit.New(st, name, []limit.Policy{limit.FixedWindow{Limit: most, Window: time.Hour}}, closed(patience)))(t)
		}
		all, plans, users := made("all", 300), made("plan", 150), made("user", 60)
		var total atomic.Int64
		var ofPlan [3]atomic.Int64
		var ofUser [6]atomic.Int64
		seed := redistest.Seed(t)
		together(64, func(n int) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			for range 40 {
				user := rng.IntN(6)
				plan := user / 2
				j, err := limit.All(t.Context(), limit.Ask{Limiter: all, Subject: "all"}, limit.Ask{Limiter: plans, Subject: fmt.Sprint(plan)}, limit.Ask{Limiter: users, Subject: fmt.Sprint(user)})
				if err != nil || j.Kept != nil {
					t.Errorf("All: got %v, and %v not given back, want a decision and nothing", err, j.Kept)
				}
				if j.Allowed {
					total.Add(1)
					ofPlan[plan].Add(1)
					ofUser[user].Add(1)
				}
			}
		})
		expect := func(l *limit.Limiter, subject string, admitted, most int64) {
			d := must(l.Peek(t.Context(), subject))(t)
			if used := most - d.Remaining; admitted > most || used != admitted {
				t.Errorf("limiter %s, subject %s: got %d admitted and %d charged, want the same number, at most %d", l.Name(), subject, admitted, used, most)
			}
		}
		expect(all, "all", total.Load(), 300)
		for i := range ofPlan {
			expect(plans, fmt.Sprint(i), ofPlan[i].Load(), 150)
		}
		for i := range ofUser {
			expect(users, fmt.Sprint(i), ofUser[i].Load(), 60)
		}
		if total.Load() < 100 {
			t.Errorf("got %d admitted in all, want at least 100", total.Load())
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

// meeting answers no call before the others have arrived.
type meeting struct {
	redis.UniversalClient

	arrived atomic.Int64
	most    int64
}

func (m *meeting) Process(ctx context.Context, cmd redis.Cmder) error {
	m.arrived.Add(1)
	for m.arrived.Load() < m.most {
		select {
		case <-ctx.Done():
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return m.UniversalClient.Process(ctx, cmd)
}

// TestAllAsksAtTheSameTime: no call waits for the answer of another.
func TestAllAsksAtTheSameTime(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb := &meeting{UniversalClient: srv.Unhurried(t), most: 3}
	var asks []limit.Ask
	for i := range 3 {
		l := must(limit.New(storetest.At(t, rdb, srv.Prefix(t)), fmt.Sprint("l", i), []limit.Policy{limit.FixedWindow{Limit: 9, Window: time.Hour}}, closed(patience)))(t)
		asks = append(asks, limit.Ask{Limiter: l, Subject: "s"})
	}
	if j, err := limit.All(t.Context(), asks...); err != nil || !j.Allowed {
		t.Errorf("All of limiters that answer at the same time: got %+v, %v, want it allowed", j, err)
	}
}

// TestAllAsksADeniedSubjectAlone until its denial ends.
func TestAllAsksADeniedSubjectAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, calls := redistest.Counted(t)
		made := func(name string, most int64, window time.Duration) *limit.Limiter {
			return must(limit.New(rdb, name, []limit.Policy{limit.FixedWindow{Limit: most, Window: window}}, closed(time.Second)))(t)
		}
		all, user := made("all", 100, time.Hour), made("user", 1, 10*time.Second)
		must(0, all.Warm(t.Context()))(t)
		ask := func() (limit.Joint, int64) {
			before := calls.Load()
			j := must(limit.All(t.Context(), limit.Ask{Limiter: all, Subject: "all"}, limit.Ask{Limiter: user, Subject: "u"}))(t)
			return j, calls.Load() - before
		}
		if j, n := ask(); !j.Allowed || n != 2 {
			t.Errorf("the first request: got %+v with %d calls, want it allowed with 2", j, n)
		}
		if j, n := ask(); j.Allowed || n < 3 || !j.Decisions[0].Allowed || j.Binds != 1 {
			t.Errorf("the second request: got %+v with %d calls, want a denial by the user's limit, and the other permit given back", j, n)
		}
		for range 5 {
			if j, n := ask(); j.Allowed || n != 1 || j.Decisions[0].Policy != "" || j.Decision().RetryAfter == 0 {
				t.Errorf("another request of the denied user: got %+v with %d calls, want a denial with one", j, n)
			}
		}
		if left := must(all.Peek(t.Context(), "all"))(t).Remaining; left != 99 {
			t.Errorf("the limit on everybody: got %d permits left, want 99", left)
		}
		time.Sleep(10 * time.Second)
		if j, n := ask(); !j.Allowed || n != 2 {
			t.Errorf("after the denial has ended: got %+v with %d calls, want it allowed with 2", j, n)
		}
	})
}

// TestAllGivesBackBesideAnError of a limiter that fails closed, and for a caller whose
// context ends.
func TestAllGivesBackBesideAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near := newTestLocal(t, nil, limit.FixedWindow{Limit: 9, Window: time.Hour})
		var dead spent
		dead.calls.Store(1000)
		gone := must(limit.New(&dead, "gone", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, closed(time.Second)))(t)
		if j, err := limit.All(t.Context(), limit.Ask{Limiter: near, Subject: "s"}, limit.Ask{Limiter: gone, Subject: "s"}); err == nil || j.Decisions != nil {
			t.Errorf("beside a limiter that fails: got %+v, %v, want an error", j, err)
		}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if _, err := limit.All(ctx, limit.Ask{Limiter: near, Subject: "s"}, limit.Ask{Limiter: near, Subject: "t"}); !errors.Is(err, context.Canceled) {
			t.Errorf("for a caller whose context ended: got %v, want context.Canceled", err)
		}
		for _, subject := range []string{"s", "t"} {
			if left := must(near.Peek(t.Context(), subject))(t).Remaining; left != 9 {
				t.Errorf("limiter of %s: got %d permits left, want 9", subject, left)
			}
		}
	})
}

func TestAllRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	l := newTestLocal(t, nil, limit.FixedWindow{Limit: 9, Window: time.Hour})
	for want, asks := range map[string][]limit.Ask{
		"limit.All: asks is empty: give at least one Ask":                          nil,
		"limit.All: asks[1]: limit: a nil or zero Limiter":                         {{Limiter: l, Subject: "s"}, {Subject: "s"}},
		"limit.All: asks[1]: limit: the subject is empty":                          {{Limiter: l, Subject: "s"}, {Limiter: l}},
		`limit.All: asks[1]: limit: a cost of 10 is not from 0 to 9, the capacity`: {{Limiter: l, Subject: "s"}, {Limiter: l, Subject: "s", Cost: 10}},
	} {
		if _, err := limit.All(t.Context(), asks...); err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("All with wrong asks: got %v, want %q", err, want)
		}
	}
	if left := must(l.Peek(t.Context(), "s"))(t).Remaining; left != 9 {
		t.Errorf("after All with a wrong ask: got %d left, want 9: nothing is taken", left)
	}
}

// TestAllGivesBackToABucket: everything comes back except what drains in the round trip
// and 2 ms.
func TestAllGivesBackToABucket(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []int64{100, 100_000} {
			policy := limit.TokenBucket{Rate: rate, Per: time.Second, Burst: 10_000}
			bucket := inBubble(t, redistest.Bubble(t), "bucket", policy)
			full := newTestLocal(t, nil, limit.FixedWindow{Limit: 1, Window: time.Hour})
			must(bucket.TakeN(t.Context(), "s", 5000))(t)
			for i := range 20 {
				must(full.Take(t.Context(), fmt.Sprint(i)))(t) // a denial of another is not remembered
				if j := must(limit.All(t.Context(), limit.Ask{Limiter: bucket, Subject: "s", Cost: 5000}, limit.Ask{Limiter: full, Subject: fmt.Sprint(i)}))(t); j.Allowed {
					t.Fatal("beside a limit that is used up: got it allowed, want a denial")
				}
				if left, least := must(bucket.Peek(t.Context(), "s"))(t).Remaining, 5000-rate*3/1000-1; left < least {
					t.Fatalf("a bucket of %d a second: got %d left, want at least %d", rate, left, least)
				}
				time.Sleep(3 * time.Millisecond)
				if left := must(bucket.Peek(t.Context(), "s"))(t).Remaining; left < 5000 {
					t.Fatalf("a bucket of %d a second, 3 ms later: got %d left, want at least 5,000", rate, left)
				}
			}
		}
	})
}
