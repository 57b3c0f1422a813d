package limit_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// TestAnEstimateWhoseWindowEmptied was taken back, and the window was then given back as
// a whole. What was used is charged to the present window, once, whether or not another
// has begun.
func TestAnEstimateWhoseWindowEmptied(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]limit.Policy{
		"window":   limit.WithLease(limit.FixedWindow{Limit: 300, Window: 30 * 24 * time.Hour, MaxDebt: 300}, 10*time.Second),
		"calendar": limit.WithLease(limit.CalendarWindow{Limit: 300, Every: limit.Month, MaxDebt: 300}, 10*time.Second),
	} {
		for what, other := range map[string]int64{"none has begun": 0, "another has begun": 7} {
			for _, used := range []int64{0, 80, 100, 120, 700} {
				t.Run(name+"/"+what, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { settlesWhatWasEmptied(t, policy, other, used) })
				})
			}
		}
	}
}

func settlesWhatWasEmptied(t *testing.T, policy limit.Policy, other, used int64) {
	t.Helper()
	m := redistest.Bubble(t)
	l := must(limit.New(redistest.BubbleClient(t, m), "emptied", []limit.Policy{policy}, closed(time.Second)))(t)
	d := tried(t, l, 100)
	m.SetError("LOADING Redis is loading the dataset in memory") // no renewal reaches it
	// A renewal is due at a multiple of 20 ms, so none is due at the moment at which Redis is
	// back. (Time is that of the bubble.)
	time.Sleep(11*time.Second + time.Millisecond)
	m.SetError("")
	if all := tried(t, l, 300); !all.Allowed {
		t.Fatal("after the lease has ended: got a denial, want all 300 granted")
	} else if _, err := all.Settle(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := tried(t, l, 0); got.Remaining != 300 {
		t.Fatalf("this test needs a window that is empty: got %d remaining", got.Remaining)
	}
	time.Sleep(time.Minute)
	if more := tried(t, l, other); other > 0 {
		if _, err := more.Settle(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	want, forgiven := min(other+used, 600), max(other+used-600, 0)
	s, err := d.Settle(t.Context(), used)
	if err != nil || s.Forgiven != forgiven {
		t.Errorf("Settle to %d: got %+v, %v, want %d forgiven", used, s, err, forgiven)
	}
	if got := usedOf(t, m); got != want {
		t.Errorf("Settle to %d beside %d: got %d charged, want %d", used, other, got, want)
	}
	if _, err := d.Settle(t.Context(), used); err == nil || usedOf(t, m) != want {
		t.Errorf("Settle again: got %v and %d charged, want an error and %d", err, usedOf(t, m), want)
	}
	if strings.HasPrefix(policy.PolicyName(), "calendar") && want > 0 {
		now := time.Now().UTC()
		ends := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		if left := m.TTL(windowOf(m)); !now.Add(left).Equal(ends) {
			t.Errorf("the calendar's window: got %v left, want it to end at %v", left, ends)
		}
	}
}

// TestEstimatesOfADeletedCounter give nothing of the next window back: an operator has deleted
// the counter alone, or Redis has evicted it.
func TestEstimatesOfADeletedCounter(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]limit.Policy{
		"window":   limit.WithLease(limit.FixedWindow{Limit: 300, Window: 30 * 24 * time.Hour}, 10*time.Second),
		"calendar": limit.WithLease(limit.CalendarWindow{Limit: 300, Every: limit.Month}, 10*time.Second),
	} {
		for begun, begins := range map[string]func(t *testing.T, l *limit.Limiter, early limit.Decision) error{
			"by a decision": func(t *testing.T, l *limit.Limiter, _ limit.Decision) error {
				_, err := l.TakeN(t.Context(), "s", 200)
				return err
			},
			"by a settlement": func(t *testing.T, _ *limit.Limiter, early limit.Decision) error {
				_, err := early.Settle(t.Context(), 200)
				return err
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				m := redistest.Bubble(t)
				l := must(limit.New(redistest.BubbleClient(t, m), "deleted", []limit.Policy{policy}, closed(time.Second)))(t)
				early, late := tried(t, l, 100), tried(t, l, 100)
				m.Del(windowOf(m))
				if err := begins(t, l, early); err != nil {
					t.Fatal(err)
				}
				if _, err := late.Settle(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				if used := usedOf(t, m); used != 200 {
					t.Errorf("%s, begun again %s: got %d charged, want the 200 of that", name, begun, used)
				}
			})
		}
	}
}

// usedOf returns what the first window of the subject s has charged.
func usedOf(t *testing.T, m *miniredis.Miniredis) (used int64) {
	t.Helper()
	key := windowOf(m)
	if key == "" {
		return 0
	}
	used, err := redistest.BubbleClient(t, m).Get(t.Context(), key).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// windowOf is the key of the only window of a subject, or empty if there is none.
func windowOf(m *miniredis.Miniredis) string {
	for _, key := range m.Keys() {
		if _, tail, _ := strings.Cut(key, "}:"); !strings.Contains(tail, "!estimates") && !strings.HasPrefix(tail, "settled:") {
			return key
		}
	}
	return ""
}

// TestNothingRenewsWhatWasTakenBack: the process whose estimate it was renews it no more.
func TestNothingRenewsWhatWasTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		leased := limit.WithLease(limit.FixedWindow{Limit: 10, Window: time.Hour}, 10*time.Second)
		rdb, sent := redistest.BubbleClient(t, m), new(redistest.CountingHook)
		rdb.AddHook(sent)
		d := must(must(limit.New(rdb, "back", []limit.Policy{leased}, closed(time.Second)))(t).TakeN(t.Context(), "s", 6))(t)
		sent.Scripts.Store(0)
		time.Sleep(5 * time.Second)
		if sent.Scripts.Load() == 0 {
			t.Fatal("in half a lease: got no renewal, want one")
		}
		m.SetError("LOADING Redis is loading the dataset in memory") // no renewal reaches it
		time.Sleep(11 * time.Second)
		m.SetError("")
		other := must(limit.New(redistest.BubbleClient(t, m), "back", []limit.Policy{leased}, closed(time.Second)))(t)
		if d := must(other.TakeN(t.Context(), "s", 10))(t); !d.Allowed {
			t.Fatal("after the lease: got a denial, want the estimate taken back")
		}
		time.Sleep(10 * time.Second) // it tries once more
		sent.Scripts.Store(0)
		time.Sleep(time.Minute)
		if n := sent.Scripts.Load(); n > 0 {
			t.Errorf("in a minute after it was taken back: got %d renewals, want none", n)
		}
		if _, err := d.Settle(t.Context(), 6); err != nil {
			t.Error(err)
		}
	})
}
