package limit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// TestRefundByTheClock does the same with a limiter on Redis and with one in process, on
// one clock: refunds of earlier decisions, late ones and copies. Both give back the same.
// For a bucket, which drains, Redis never gives back more. It may keep what drains in a
// thousandth of the time, by which clocks may differ.
func TestRefundByTheClock(t *testing.T) { //nolint:tparallel // what they have met is counted when all have ended
	t.Parallel()
	var met redistest.Coverage
	t.Run("of", func(t *testing.T) {
		for _, row := range slices.Concat(lua.Kinds, []string{"set"}) {
			t.Run(row, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { met.Add(refundsByTheClock(t, row)) })
			})
		}
	})
	met.Want(t, 1, "given back", "too late")
}

func refundsByTheClock(t *testing.T, row string) map[string]int {
	t.Helper()
	rng := redistest.Rand(t)
	m := redistest.Bubble(t)
	late, given := 0, 0
	for i := range max(redistest.Steps(100_000/len(lua.Kinds))/100, 1) {
		specs := new(feature).specs(rng, row, rng.IntN(12))
		policies := policiesOf(specs)
		far := inBubble(t, m, fmt.Sprintf("n%d", i), policies...)
		g, l := sideBySide(t, rng, specs, far, must(limit.NewLocal("near", policies, nil))(t))
		given, late = given+g, late+l
	}
	return map[string]int{"given back": given, "too late": late}
}

func sideBySide(t *testing.T, rng *rand.Rand, specs []spec, far, near *limit.Limiter) (given, late int) {
	t.Helper()
	type pair struct{ far, near limit.Decision }
	var made []pair
	most, step, exact, windowed := capacity(specs), time.Millisecond, true, false
	for _, p := range newModel(specs, false).parts {
		switch p.state.(type) {
		case *bucket, *keptBucket:
			exact = false
		case *window, *sliding:
			windowed = true
		}
		length := p.window()
		exact = exact && (length == 0 || length > 50*time.Millisecond)
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
					specs, one, other, exact)
			}
			if given++; one != nil {
				given, late = given-1, late+1
			}
			compare(t, specs, far, near, subject, exact)
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
		if pause := randomPause(rng, first(a), step); pause < 1000*day {
			time.Sleep(pause)
		}
	}
	return given, late
}

func compare(t *testing.T, specs []spec, far, near *limit.Limiter, subject string, exact bool) {
	t.Helper()
	a, err := far.Peek(t.Context(), subject)
	b, fault := near.Peek(t.Context(), subject)
	if err != nil || fault != nil {
		t.Fatalf("two peeks: got %v on Redis and %v in process, want no error", err, fault)
	}
	if exact && describe(a) != describe(b) || a.Remaining > b.Remaining {
		t.Fatalf("%+v: after a refund: got on Redis\n%s\nwant no more remaining, and (if %t) all as in process\n%s",
			specs, describe(a), exact, describe(b))
	}
}
