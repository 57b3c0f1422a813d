package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
)

// through is a request on its way, behind middleware of others.
func through(p gate.Pass) *request {
	return &request{ctx: context.WithValue(p.Context, userKey(9), "between")}
}

// leaving is a gate that the client does not wait for.
func leaving(g gate.Gate) gate.Gate {
	return &fake{func(r gate.Request) gate.Pass {
		ctx, stop := context.WithCancel(r.Context())
		stop()
		return g.Enter(&request{ctx: ctx})
	}}
}

// TestRefusalGivesBackOuterPermits: whatever the refusal is, in a chain and
// mounted apart.
func TestRefusalGivesBackOuterPermits(t *testing.T) {
	t.Parallel()
	empty := hourly(t, 1)
	if _, err := empty.Take(context.Background(), "everyone"); err != nil {
		t.Fatal(err)
	}
	full := inFlight(t, 1)
	if _, err := full.Acquire(context.Background(), "everyone"); err != nil {
		t.Fatal(err)
	}
	busy, _ := locks(t, lock.Options{})
	if _, err := busy.Try(context.Background(), "everyone"); err != nil {
		t.Fatal(err)
	}
	cost := func(gate.Request) (int64, error) { return 2, nil }
	for name, c := range map[string]struct {
		status int
		inner  gate.Gate
	}{
		"limit": {429, gate.RateLimit(empty, everyone, nil)},
		"full":  {429, gate.Concurrency(full, everyone, nil)},
		"held":  {409, gate.Exclusive(busy, everyone, nil)},
		"key":   {400, gate.RateLimit(empty, gate.ByHeader("X-Api-Key"), nil)},
		"plan": {402, gate.RateLimit(empty, everyone, &gate.RateLimitOptions{
			Choose: func(gate.Request) (*limit.Limiter, error) { return nil, gate.Refuse(402, "Pay first") },
		})},
		"wiring": {500, gate.RateLimit(empty, gate.ByRoute(), nil)},
		"outage": {503, gate.RateLimit(dead(t), everyone, nil)},
		"client": {503, leaving(gate.RateLimit(empty, everyone, nil))},
	} {
		all, tenant := hourly(t, 100), hourly(t, 100)
		outer := gate.RateLimit(all, everyone, nil)
		middle := gate.RateLimit(tenant, everyone, &gate.RateLimitOptions{Cost: cost, Count: gate.OnlyFailures})
		first := outer.Enter(&request{})
		second := middle.Enter(through(first))
		if a, b := used(t, all), used(t, tenant); a != 1 || b != 2 {
			t.Fatalf("%s: %d and %d used before the refusal", name, a, b)
		}
		refused := c.inner.Enter(through(second))
		if refused.Reply.Status != c.status {
			t.Fatalf("%s: got %d, want %d", name, refused.Reply.Status, c.status)
		}
		if a, b := used(t, all), used(t, tenant); a != 0 || b != 0 {
			t.Errorf("%s: %d and %d used after the refusal, mounted apart", name, a, b)
		}
		second.Leave(refused.Reply)
		if a, b := used(t, all), used(t, tenant); a != 0 || b != 0 {
			t.Errorf("%s: %d and %d used after the response", name, a, b)
		}

		// A twin took what may not be given back a second time.
		for _, l := range []*limit.Limiter{all, tenant} {
			if _, err := l.TakeN(context.Background(), "everyone", 50); err != nil {
				t.Fatal(err)
			}
		}
		for _, g := range []gate.Gate{gate.Chain(outer, middle, c.inner), gate.Chain(gate.Chain(outer, middle), c.inner), gate.Chain(outer, gate.Chain(middle, c.inner))} {
			if p := g.Enter(&request{}); p.Reply == nil || p.Reply.Status != c.status {
				t.Fatalf("%s: %+v", name, p.Reply)
			}
			if a, b := used(t, all), used(t, tenant); a != 50 || b != 50 {
				t.Errorf("%s: %d and %d used after the refusal in a chain", name, a, b)
			}
		}
	}
}

// Only a gate that refuses gives back: not one that answers for another reason,
// nor what lies beside the refused request.
func TestWhatIsNotGivenBack(t *testing.T) {
	t.Parallel()
	all, part := hourly(t, 100), hourly(t, 1)
	outer, inner := gate.RateLimit(all, everyone, nil), gate.RateLimit(part, everyone, nil)

	gate.Chain(outer, always(gate.Pass{Reply: answered(429)})).Enter(&request{})
	if got := used(t, all); got != 1 {
		t.Errorf("%d used after an answer that is no refusal", got)
	}

	first := outer.Enter(&request{})
	admitted, refused := inner.Enter(through(first)), inner.Enter(through(first))
	if admitted.Reply != nil || refused.Reply == nil {
		t.Fatal("the parts were not admitted and refused")
	}
	if got := used(t, part); got != 1 {
		t.Errorf("%d parts count, want the one that was admitted", got)
	}
	if got := used(t, all); got != 1 {
		t.Errorf("%d used", got)
	}
	inner.Enter(through(first))
	if got := used(t, all); got != 1 {
		t.Errorf("%d used after a second refusal", got)
	}

	inner.Enter(&request{})
	if got := used(t, all); got != 1 {
		t.Errorf("%d used after the refusal of another request", got)
	}
}

// What counted stays counted, whatever is refused under its context later.
func TestRefusalAfterTheAnswer(t *testing.T) {
	t.Parallel()
	all := hourly(t, 100)
	p := gate.RateLimit(all, everyone, &gate.RateLimitOptions{Count: gate.OnlyFailures}).Enter(&request{})
	p.Leave(answered(401))
	gate.RateLimit(all, gate.ByHeader("X-Api-Key"), nil).Enter(through(p))
	if got := used(t, all); got != 1 {
		t.Errorf("%d used", got)
	}
}

// The hook of the gate whose refund fails is told, with the request that was
// refused; the refusal is sent as it is.
func TestRefusalWhoseRefundFails(t *testing.T) {
	t.Parallel()
	var theirs, ours hook
	var asked gate.Request
	l, s := mortal(t, 3, limit.FailClosed)
	p := gate.RateLimit(l, everyone, &gate.RateLimitOptions{
		Count: func(int) bool { return false },
		OnError: func(r gate.Request, err error) {
			asked = r
			theirs.hear(r, err)
		},
	}).Enter(&request{})
	s.gone.Store(true)
	r := through(p)
	refused := gate.RateLimit(l, gate.ByHeader("X-Api-Key"), &gate.RateLimitOptions{OnError: ours.hear}).Enter(r)
	if refused.Reply.Status != 400 {
		t.Errorf("%d", refused.Reply.Status)
	}
	if err := theirs.take(); !errors.Is(err, errNoPerm) || asked != r {
		t.Errorf("the outer gate's hook was told %v of %v", err, asked)
	}
	if err := ours.take(); err != nil {
		t.Errorf("the inner gate's hook was told %v", err)
	}
	p.Leave(refused.Reply)
	if err := theirs.take(); err != nil {
		t.Errorf("it was tried again, and the hook told %v", err)
	}
}

// The context of an admission is the request's in all but one key.
func TestAdmissionIsTheRequestsContext(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithDeadline(context.WithValue(context.Background(), userKey(1), "alice"), time.Now().Add(time.Hour))
	p := gate.RateLimit(hourly(t, 1), everyone, nil).Enter(&request{ctx: ctx})
	child, cancel := context.WithCancel(p.Context)
	defer cancel()
	at, _ := ctx.Deadline()
	if got, ok := child.Deadline(); !ok || got != at || child.Value(userKey(1)) != "alice" || child.Value(userKey(2)) != nil || child.Err() != nil {
		t.Errorf("%v: %v", child, child.Err())
	}
	stop()
	<-child.Done()
	if child.Err() != context.Canceled {
		t.Errorf("%v", child.Err())
	}
}
