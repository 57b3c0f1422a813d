package gate_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// TestEachDenialIsOfAKindOfItsGate, and keeps no request.
func TestEachDenialIsOfAKindOfItsGate(t *testing.T) {
	t.Parallel()
	srv, rdb := redistest.Miniredis(t)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := limit.New(rdb, "n", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed, Budget: time.Minute})
	must(err)
	_, err = l.Take(t.Context(), "everyone")
	must(err)
	slots, err := inflight.New(rdb, "n", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
	must(err)
	_, err = slots.Try(t.Context(), "everyone")
	must(err)
	locker, err := lock.New(rdb, "n", &lock.Options{Budget: 10 * time.Second})
	must(err)
	_, err = locker.Try(t.Context(), "everyone")
	must(err)
	guard, err := idempotency.New(rdb, "n", idempotency.Retry{}, &idempotency.Options{Budget: 10 * time.Second})
	must(err)
	shop, err := stock.New(rdb, "n", &stock.Options{Budget: 10 * time.Second})
	must(err)
	var blocked gate.List
	must(blocked.Swap([]string{"everyone"}, nil))
	post := &request{method: "POST", header: map[string][]string{"Idempotency-Key": {"key"}}}
	gate.Idempotent(guard, everyone, nil).Enter(post) // runs until the test ends
	refuses := func(gate.Request) (string, error) { return "", gate.Refuse(418, "Not so") }
	fails := func(gate.Request) (string, error) { return "", context.DeadlineExceeded }
	for name, of := range map[string]struct {
		gate   func(key gate.Key) gate.Gate
		denies gate.Kind
	}{
		"RateLimit":   {func(key gate.Key) gate.Gate { return gate.RateLimit(l, key, nil) }, gate.KindLimited},
		"RateLimits":  {func(key gate.Key) gate.Gate { return gate.RateLimits(gate.RateLimit(l, key, nil)) }, gate.KindLimited},
		"Concurrency": {func(key gate.Key) gate.Gate { return gate.Concurrency(slots, key, nil) }, gate.KindFull},
		"Block":       {func(key gate.Key) gate.Gate { return gate.Block(&blocked, key, nil) }, gate.KindBlocked},
		"Exclusive":   {func(key gate.Key) gate.Gate { return gate.Exclusive(locker, key, nil) }, gate.KindHeld},
		"Idempotent":  {func(key gate.Key) gate.Gate { return gate.Idempotent(guard, key, nil) }, gate.KindInFlight},
		"Reserve":     {func(key gate.Key) gate.Gate { return gate.Reserve(shop, key, key, nil) }, gate.KindUnknownItem},
		"a chain":     {func(key gate.Key) gate.Gate { return gate.Chain(gate.RateLimit(l, key, nil)) }, gate.KindLimited},
	} {
		denied := func(why string, key gate.Key, want ...gate.Kind) {
			t.Helper()
			g := of.gate(key)
			kinds, known := gate.Kinds(g)
			pass := g.Enter(post)
			switch d := pass.Denial; {
			case d == nil || pass.Reply == nil:
				t.Errorf("%s, %s: got %+v, want a denial", name, why, pass)
			case !known || !slices.Contains(kinds, d.Kind) || !slices.Contains(want, d.Kind) || d.Status != pass.Reply.Status || d.Request != nil:
				t.Errorf("%s, %s: got the kind %d of %v, status %d and the request %v, want one of %v and of the gate, %d and none", name, why, d.Kind, kinds, d.Status, d.Request, want, pass.Reply.Status)
			}
		}
		srv.SetError("")
		denied("denied", everyone, of.denies)
		denied("refused", refuses, gate.KindRefused)
		denied("failed", fails, gate.KindFault)
		if name == "Block" { // it asks nobody
			continue
		}
		srv.SetError("NOPERM this user has no permissions")
		denied("Redis is away", everyone, gate.KindUnavailable, gate.KindNotBegun, gate.KindNotReserved)
	}
	if _, known := gate.Kinds(nil); known {
		t.Error("no gate: got its kinds, want them not known")
	}
}
