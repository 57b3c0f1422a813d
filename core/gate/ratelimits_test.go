package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
)

// three are limits for everybody, for a plan and for a user.
func three(t *testing.T, opts *gate.RateLimitOptions) (all, plans, users *limit.Limiter, g gate.Gate) {
	t.Helper()
	make := func(name string, most int64) *limit.Limiter {
		return local(t, limit.FixedWindow{Name: name, Limit: most, Window: 10 * time.Second})
	}
	all, plans, users = make("all", 10), make("plan", 6), make("user", 3)
	return all, plans, users, gate.RateLimits(
		gate.RateLimit(all, everyone, opts),
		gate.RateLimit(plans, gate.ByParam("plan"), opts),
		gate.RateLimit(users, gate.ByParam("user"), opts),
	)
}

func as(plan, user string) *request {
	return &request{route: "/{plan}/{user}", params: map[string]string{"plan": plan, "user": user}}
}

func left(t *testing.T, l *limit.Limiter, subject string) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// TestRateLimitsAreAllOrNothing: a request that one of them denies takes nothing of the
// others.
func TestRateLimitsAreAllOrNothing(t *testing.T) {
	t.Parallel()
	all, plans, users, g := three(t, nil)
	admitted := func(plan, user string, n int) (got int) {
		for range n {
			if g.Enter(as(plan, user)).Reply == nil {
				got++
			}
		}
		return got
	}
	for _, c := range []struct {
		plan, user string
		want       int
	}{{"gold", "ann", 3}, {"gold", "bob", 3}, {"gold", "cid", 0}, {"tin", "dan", 3}, {"tin", "eve", 1}} {
		if got := admitted(c.plan, c.user, 5); got != c.want {
			t.Errorf("%s of plan %s: got %d of 5 admitted, want %d", c.user, c.plan, got, c.want)
		}
	}
	if left(t, all, "everyone") != 0 || left(t, plans, "param:plan=tin") != 2 || left(t, users, "param:user=cid") != 3 || left(t, users, "param:user=eve") != 2 {
		t.Errorf("got %d, %d, %d and %d left, want 0, 2, 3 and 2: denials take nothing",
			left(t, all, "everyone"), left(t, plans, "param:plan=tin"), left(t, users, "param:user=cid"), left(t, users, "param:user=eve"))
	}
}

func TestHeadersOfRateLimits(t *testing.T) {
	t.Parallel()
	_, _, _, g := three(t, nil)
	p := g.Enter(as("gold", "ann"))
	if got, want := fmt.Sprint(p.Header), `[{Ratelimit-Policy "all";q=10;w=10, "plan";q=6;w=10, "user";q=3;w=10 true} {Ratelimit "all";r=9;t=10, "plan";r=5;t=10, "user";r=2;t=10 true}]`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	g.Enter(as("gold", "ann"))
	g.Enter(as("gold", "ann"))
	denied := g.Enter(as("gold", "ann")).Reply
	if got := lines(denied.Header, "Ratelimit"); denied.Status != 429 || len(got) != 1 || !strings.HasPrefix(got[0], `"user";r=0;t=`) {
		t.Errorf("a denial: got %d with %q, want a 429 with the limit that denies", denied.Status, got)
	}
	if got := lines(denied.Header, "Retry-After"); len(got) != 1 {
		t.Errorf("a denial: got Retry-After %q, want one", got)
	}
	_, _, _, g = three(t, &gate.RateLimitOptions{Headers: gate.HeadersLegacy})
	if got, want := fmt.Sprint(g.Enter(as("gold", "ann")).Header), `[{Ratelimit-Limit 3 false} {Ratelimit-Remaining 2 false} {Ratelimit-Reset 10 false}]`; got != want {
		t.Errorf("the older fields: got %s\nwant %s", got, want)
	}
}

// TestRateLimitsKeepTheirOptions: Skip, Cost, Count and InContext of each gate hold.
func TestRateLimitsKeepTheirOptions(t *testing.T) {
	t.Parallel()
	first, second, third, fourth := hourly(t, 9), hourly(t, 9), hourly(t, 9), hourly(t, 9)
	of := func(l *limit.Limiter, opts gate.RateLimitOptions) gate.RateLimitGate {
		return gate.RateLimit(l, everyone, &opts)
	}
	costs := func(n int64) func(gate.Request) (int64, error) {
		return func(gate.Request) (int64, error) { return n, nil }
	}
	g := gate.RateLimits(
		of(first, gate.RateLimitOptions{Skip: func(gate.Request) bool { return true }}),
		of(second, gate.RateLimitOptions{Cost: costs(4), InContext: true}),
		of(third, gate.RateLimitOptions{Count: gate.OnlyFailures}),
		of(fourth, gate.RateLimitOptions{Cost: costs(0)}),
	)
	p := g.Enter(&request{})
	d, ok := limit.FromContext(p.Context)
	if !ok || d.Remaining != 5 {
		t.Errorf("got the decision %+v, %t in the context, want one with 5 left", d, ok)
	}
	p.Leave(&gate.Reply{Status: 200, Body: []byte("ok")})
	for i, c := range []struct {
		limiter *limit.Limiter
		want    int64
	}{{first, 9}, {second, 5}, {third, 9}, {fourth, 9}} {
		if got := left(t, c.limiter, "everyone"); got != c.want {
			t.Errorf("limit %d: got %d left, want %d", i+1, got, c.want)
		}
	}
	none := gate.RateLimits(of(first, gate.RateLimitOptions{Skip: func(gate.Request) bool { return true }}))
	if p := none.Enter(&request{}); p.Reply != nil || p.Header != nil || p.Leave != nil {
		t.Errorf("where all skip: got %+v, want the zero Pass", p)
	}
}

// TestErrorsOfRateLimits covers an error of Redis, of a key and of a cost, and a limit
// that goes on without Redis.
func TestErrorsOfRateLimits(t *testing.T) {
	t.Parallel()
	near := hourly(t, 9)
	var told hook
	opts := func(cost int64) *gate.RateLimitOptions {
		return &gate.RateLimitOptions{OnError: told.hear, Cost: func(gate.Request) (int64, error) { return cost, nil }}
	}
	open, err := limit.New(deadRedis{errNoPerm}, "open", []limit.Policy{limit.FixedWindow{Name: "w", Limit: 3, Window: time.Hour}}, &limit.Options{Budget: time.Minute, Fail: store.FailOpen})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		other  gate.RateLimitGate
		status int
		told   int
	}{
		{"a limiter that is closed", gate.RateLimit(dead(t), everyone, opts(1)), 503, 1},
		{"a limiter that is open", gate.RateLimit(open, everyone, opts(1)), 0, 1},
		{"a request without the key", gate.RateLimit(hourly(t, 9), gate.ByHeader("X-Api-Key"), opts(1)), 400, 0},
		{"a cost beyond the limit", gate.RateLimit(hourly(t, 9), everyone, opts(10)), 400, 0},
	} {
		before, toldBefore := left(t, near, "everyone"), len(told.errs)
		p := gate.RateLimits(gate.RateLimit(near, everyone, opts(1)), c.other).Enter(&request{})
		status, taken := 0, int64(1)
		if p.Reply != nil {
			status, taken = p.Reply.Status, 0
		}
		if status != c.status || len(told.errs)-toldBefore != c.told {
			t.Errorf("%s: got %d and %d errors for the hook, want %d and %d", c.what, status, len(told.errs)-toldBefore, c.status, c.told)
		}
		if after := left(t, near, "everyone"); before-after != taken {
			t.Errorf("%s: the other limit had %d left and has %d, want %d taken", c.what, before, after, taken)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	toldBefore := len(told.errs)
	p := gate.RateLimits(gate.RateLimit(near, everyone, opts(1)), gate.RateLimit(hourly(t, 9), everyone, opts(1))).Enter(&request{ctx: gone})
	if p.Reply == nil || p.Reply.Status != 503 || len(told.errs) != toldBefore {
		t.Errorf("a client that has gone: got %+v, want a 503, and the hook not told", p.Reply)
	}
	if !errors.Is(told.errs[0], errNoPerm) {
		t.Errorf("the hook was told %v, want the error of Redis", told.errs[0])
	}
}

func TestRateLimitsAreCheckedAtWiring(t *testing.T) {
	t.Parallel()
	good := gate.RateLimit(hourly(t, 1), everyone, nil)
	for want, wire := range map[string]func(){
		"limits is empty: give":         func() { gate.RateLimits() },
		"limits[1] is nil: give a gate": func() { gate.RateLimits(good, nil) },
		"limits[0] has RateLimitOptions.Wait: lea": func() {
			gate.RateLimits(gate.RateLimit(hourly(t, 1), everyone, &gate.RateLimitOptions{Wait: time.Second}))
		},
	} {
		if got := fmt.Sprint(panics(t, wire)); !strings.Contains(got, want) {
			t.Errorf("got the panic %q, want %q in it", got, want)
		}
	}
}
