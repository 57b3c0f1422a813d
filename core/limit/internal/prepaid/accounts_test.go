package prepaid

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// server charges whatever it is asked for, after a while.
type server struct{ takes time.Duration }

type taken struct{ kind.Request }

func (t *taken) Taken() *kind.Request { return &t.Request }

func (*taken) GiveBack(context.Context, int64) error { return nil }

func (s server) Charge(_ context.Context, subject string, cost int64) (Charge, int64, error) {
	time.Sleep(s.takes)
	reading := kind.Reading{N: [4]int64{cost, time.Hour.Milliseconds()}}
	return &taken{kind.Request{Subject: subject, Cost: cost, Readings: []kind.Reading{reading}}}, 1_000_000, nil
}

func aWindow(t *testing.T) *kind.Set {
	t.Helper()
	window, err := kind.NewWindow(1_000_000, time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	return kind.NewSet([]*kind.Rule{kind.NewRule("n", "n", window)}, false)
}

// TestTheRateCountsEachRequest once: when permits are there, when the next permits take
// over, and when it waits for a charge.
func TestTheRateCountsEachRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set := aWindow(t)
		a := New(20, time.Minute, 1)
		one, by := a.Of("s", set), server{10 * time.Millisecond}
		take := func(cost int64) {
			if from, _, _ := one.Take(by, cost, nil); from != nil {
				return
			}
			from, _, _, err := one.Ask(t.Context(), by, "s", cost, nil)
			if err != nil {
				t.Fatal(err)
			}
			if from == nil {
				one.Note(1_000_000) // it was asked for by itself
			}
		}
		const n = 1000
		for i := range n / 2 {
			take(1)
			take(3)
			if i < n/4 {
				time.Sleep(2 * time.Millisecond) // the next permits are there before the others are used up
			}
		}
		time.Sleep(time.Second)
		got := one.taken.Load()
		for _, p := range []*Permits{one.current.Load(), one.next.Load()} {
			if p != nil {
				got += p.demand()
			}
		}
		if want := int64(4 * n / 2); got != want { // a rate is not computed before a quarter of the Term
			t.Errorf("the account's count: got a demand of %d, want %d", got, want)
		}
		time.Sleep(2 * time.Minute)
	})
}

// TestTheRateCountsWhatAResetEnds, because these requests were made.
func TestTheRateCountsWhatAResetEnds(t *testing.T) {
	t.Parallel()
	a := New(100, time.Minute, 1)
	one, p := a.Of("s", aWindow(t)), &Permits{of: a, end: a.now() + int64(time.Minute), given: make([]atomic.Uint64, 1)}
	p.add(50)
	one.current.Store(p)
	for range 7 {
		p.take(a.now(), 3)
	}
	a.Drop("s")
	if got := one.taken.Load(); got != 21 {
		t.Errorf("the account's count after the reset: got a demand of %d, want 21", got)
	}
}

// TestAForgottenAccountIsNotUsed, because a Reset would not find it.
func TestAForgottenAccountIsNotUsed(t *testing.T) {
	t.Parallel()
	set := aWindow(t)
	a := New(2, time.Second, 1) // has room for one
	for _, subject := range []string{"s", "s", "another", "s"} {
		one := a.Of(subject, set)
		if stored := a.all.Of(subject); len(stored) != 1 || stored[0] != one {
			t.Errorf("%s: got an account that was forgotten, want the one that is stored", subject)
		}
	}
}

// TestAResetEndsThePermitsOfItsSubject, and of no other.
func TestAResetEndsThePermitsOfItsSubject(t *testing.T) {
	t.Parallel()
	set := aWindow(t)
	a := New(100, time.Minute, 1000)
	for i := range 500 {
		p := &Permits{of: a, end: a.now() + int64(time.Minute), given: make([]atomic.Uint64, 1)}
		p.add(50)
		a.Of(fmt.Sprint(i), set).current.Store(p)
	}
	a.Drop("7")
	for i := range 500 {
		if current, _ := a.Held(fmt.Sprint(i), set); (current.Left() == 50) == (i == 7) {
			t.Errorf("subject %d after a reset of 7: got %d permits left, want those of 7 ended alone", i, current.Left())
		}
	}
}

// TestWhatIsChargedAheadIsGrantedWithoutMemory.
func TestWhatIsChargedAheadIsGrantedWithoutMemory(t *testing.T) { //nolint:paralleltest // it counts allocations
	set := aWindow(t)
	a := New(1_000_000, time.Minute, 1)
	charged, _, _ := server{}.Charge(t.Context(), "s", 1_000_000)
	p := &Permits{Charge: charged, of: a, end: a.now() + int64(time.Minute), size: 1_000_000, given: make([]atomic.Uint64, 1_000_000/32)}
	p.add(1_000_000)
	a.Of("s", set).current.Store(p)
	var by Charger = server{}
	if n := testing.AllocsPerRun(1000, func() {
		var few [kind.Few]kind.Reading
		if from, _, told := a.Of("s", set).Take(by, 1, few[:0]); from != p || len(told) != 1 {
			t.Fatal("got no permit, want one of those that are charged")
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
