package limit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// observations collects what an Observer is told.
type observations struct {
	mu  sync.Mutex
	all []Observation
}

func (o *observations) hear(_ context.Context, one Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, one)
}

func (o *observations) last(t *testing.T) Observation {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		t.Fatal("the observer was told nothing")
	}
	return o.all[len(o.all)-1]
}

func TestTheObserverHearsOfEveryDecision(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		var heard observations
		l, err := New(storetest.At(t, rdb, prefix), "seen", []Policy{FixedWindow{Name: "w", Limit: 2, Window: time.Hour}},
			&Options{Budget: 5 * time.Second, Fail: FailClosed, Observer: heard.hear})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []Outcome{Allowed, Denied} {
			d, err := l.TakeN(t.Context(), "alice", 2)
			if err != nil {
				t.Fatal(err)
			}
			o := heard.last(t)
			if o.Outcome != want || o.Limiter != "seen" || o.Cost != 2 || o.Duration <= 0 || o.Cause != nil ||
				o.Decision.Policy != "w" || o.Decision.Allowed != d.Allowed || o.Decision.Remaining != 0 {
				t.Errorf("%v: %+v", want, o)
			}
		}
		if _, err := l.Peek(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		if n := len(heard.all); n != 2 {
			t.Errorf("the observer was told of %d decisions, not 2: a Peek is none", n)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Take(gone, "alice"); err == nil {
			t.Fatal("a call of a context that has ended was made")
		}
		if o := heard.last(t); o.Outcome != Canceled || !errors.Is(o.Cause, context.Canceled) {
			t.Errorf("%+v", o)
		}
		if s := l.Stats(); s.Allowed != 1 || s.Denied != 1 || s.Canceled != 1 || s.Failed != 0 || s.Degraded != 0 || s.Open {
			t.Errorf("%+v", s)
		}
	})
}

// leaking fails with a text that names a key, as Redis' own errors may.
type leaking struct{}

func (leaking) Process(_ context.Context, cmd redis.Cmder) error {
	err := errors.New("broken pipe on " + fmt.Sprint(cmd.Args()...))
	cmd.SetErr(err)
	return err
}

// TestTheObserverHearsNoKey looks at all that an observer is given.
func TestTheObserverHearsNoKey(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		var heard observations
		l, err := New(leaking{}, "seen", []Policy{FixedWindow{Name: "w", Limit: 2, Window: time.Hour}},
			&Options{Fail: mode, Observer: heard.hear})
		if err != nil {
			t.Fatal(err)
		}
		d, err := l.Take(t.Context(), "alice")
		if text := fmt.Sprint(err, d.Cause); !strings.Contains(text, "alice") {
			t.Fatalf("%v: the operator is not told what failed: %s", mode, text)
		}
		o := heard.last(t)
		if text := fmt.Sprintf("%+v %#v", o, o); strings.Contains(text, "alice") || o.Decision.grant != nil {
			t.Errorf("%v: %s", mode, text)
		}
		if !errors.Is(o.Cause, script.ErrMaybeExecuted) || o.Decision.Degraded == (mode == FailClosed) ||
			(o.Outcome == Failed) != (mode == FailClosed) {
			t.Errorf("%v: %+v", mode, o)
		}
		if s := l.Stats(); s.Degraded+s.Failed != 1 || (s.Failed == 1) != (mode == FailClosed) {
			t.Errorf("%v: %+v", mode, s)
		}
	}
}

// hanging fails after a while.
type hanging time.Duration

func (h hanging) Process(_ context.Context, cmd redis.Cmder) error {
	time.Sleep(time.Duration(h))
	cmd.Args() // as one that was written
	err := errors.New("nobody answered")
	cmd.SetErr(err)
	return err
}

// TestTheObserverHearsHowLongItTook in every mode: what the caller waited.
func TestTheObserverHearsHowLongItTook(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		synctest.Test(t, func(t *testing.T) {
			const took = 30 * time.Millisecond
			var heard observations
			l, err := New(hanging(took), "slow", []Policy{FixedWindow{Limit: 2, Window: time.Hour}},
				&Options{Fail: mode, Observer: heard.hear})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Take(t.Context(), "s"); (err != nil) != (mode == FailClosed) {
				t.Fatal(err)
			}
			if o := heard.last(t); o.Duration != took {
				t.Errorf("%v: it took %v, not %v", mode, o.Duration, took)
			}
		})
	}
}

// TestALimiterOfWithSharesStats has a limiter and one that With made of it report
// the same counts: what both have decided, and their common local state.
func TestALimiterOfWithSharesStats(t *testing.T) {
	t.Parallel()
	l := newTestLocal(t, nil, FixedWindow{Limit: 1, Window: time.Hour})
	other, err := l.With(FixedWindow{Limit: 1, Window: time.Hour}, FixedWindow{Limit: 5, Window: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Take(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := other.Take(t.Context(), "s"); err != nil || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
	for name, s := range map[string]Stats{"the limiter": l.Stats(), "the one of With": other.Stats()} {
		if s.Allowed != 1 || s.Denied != 2 || s.LocalStates != 1 {
			t.Errorf("%s: got %+v, want 1 allowed, 2 denied and 1 local state", name, s)
		}
	}
}

// TestTheObserverHearsOfACallThatNeverBegan, and that it took no time.
func TestTheObserverHearsOfACallThatNeverBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard observations
		l := newTestLocal(t, &Options{Observer: heard.hear}, FixedWindow{Limit: 2, Window: time.Hour})
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = l.Take(gone, "s")
		if o := heard.last(t); o.Outcome != Canceled || o.Duration != 0 {
			t.Errorf("%+v", o)
		}
	})
}

func TestAnObserverThatPanicsLeavesNoSlot(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		c, err := NewConcurrency(storetest.At(t, rdb, prefix), "panics", 1, &ConcurrencyOptions{
			Budget:   5 * time.Second,
			Observer: func(context.Context, Observation) { panic("an observer") },
		})
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was kept from the caller")
				}
			}()
			_, _ = c.Acquire(t.Context(), "s")
		}()
		if n, err := c.InFlight(t.Context(), "s"); n != 0 || err != nil || c.Stats().InFlight != 0 {
			t.Errorf("%d are in flight, %v, %+v", n, err, c.Stats())
		}
	})
}
