package limit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// observations collects what an observer is told of limits.
type observations struct {
	mu  sync.Mutex
	all []store.Event
}

func (o *observations) hear(_ context.Context, e store.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Primitive == store.Limit {
		o.all = append(o.all, e)
	}
}

// of returns a store on the client, with that prefix, whose events it collects.
func (o *observations) of(t *testing.T, rdb script.Client, prefix string) *store.Store {
	t.Helper()
	st := storetest.At(t, rdb, prefix)
	st.Observe(o.hear)
	return st
}

func (o *observations) last(t *testing.T) store.Event {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		t.Fatal("a decision: got no event, want one")
	}
	return o.all[len(o.all)-1]
}

func TestTheObserverHearsOfEveryDecision(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		var heard observations
		l := must(limit.New(heard.of(t, rdb, prefix), "seen", []limit.Policy{limit.FixedWindow{Name: "w", Limit: 2, Window: time.Hour}}, closed(patience)))(t)
		for _, want := range []store.Outcome{store.Granted, store.Denied} {
			must(l.TakeN(t.Context(), "alice", 2))(t)
			o := heard.last(t)
			if o.Duration <= 0 {
				t.Errorf("the event %s: got a duration of %v, want above 0", want, o.Duration)
			}
			o.Duration = 0
			if want := (store.Event{Primitive: store.Limit, Name: "seen", Policy: "w", Outcome: want, Cost: 2}); o != want {
				t.Errorf("a decision: got the event %+v, want %+v", o, want)
			}
		}
		must(l.Peek(t.Context(), "alice"))(t)
		if n := len(heard.all); n != 2 {
			t.Errorf("after a Peek and two takes: got %d events, want 2: a Peek has none", n)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Take(gone, "alice"); err == nil {
			t.Fatal("a take with a canceled context: got no error, want one")
		}
		if o := heard.last(t); o.Outcome != store.Canceled || o.Class != context.Canceled {
			t.Errorf("a canceled take: got the event %+v, want outcome canceled and class context.Canceled", o)
		}
		soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := l.Wait(soon, "alice"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait of 100 ms for an hour to end: got %v, want %v", err, context.DeadlineExceeded)
		}
		if o := heard.last(t); o.Outcome != store.Canceled || o.Class != context.DeadlineExceeded || len(heard.all) != 4 {
			t.Errorf("a wait that was given up: got %d events in all, the last %+v, want 4, and a canceled one", len(heard.all), o)
		}
		if s := l.Stats(); s.Allowed != 1 || s.Denied != 1 || s.Canceled != 2 || s.Failed != 0 || s.Degraded != 0 || s.Open {
			t.Errorf("got stats %+v, want 1 allowed, 1 denied and 2 canceled", s)
		}
	})
}

// leaking fails with a text that names a key, as Redis' own errors may do.
type leaking struct{}

func (leaking) Process(_ context.Context, cmd redis.Cmder) error {
	err := errors.New("broken pipe on " + fmt.Sprint(redistest.Write(cmd)...))
	cmd.SetErr(err)
	return err
}

// TestTheObserverHearsNoKey checks everything that an observer is given.
func TestTheObserverHearsNoKey(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		var heard observations
		l := must(limit.New(heard.of(t, leaking{}, "p"), "seen", []limit.Policy{limit.FixedWindow{Name: "w", Limit: 2, Window: time.Hour}}, &limit.Options{Fail: mode}))(t)
		d, err := l.Take(t.Context(), "alice")
		if text := fmt.Sprint(err, d.Cause); !strings.Contains(text, "alice") {
			t.Fatalf("%v: got the error %s, want one that says what failed, with the key", mode, text)
		}
		o := heard.last(t)
		if text := fmt.Sprintf("%+v %#v", o, o); strings.Contains(text, "alice") {
			t.Errorf("%v: got the event %s, want it without the subject", mode, text)
		}
		if o.Class != script.ErrMaybeExecuted || (o.Outcome == store.Failed) != (mode == store.FailClosed) {
			t.Errorf("%v: got the event %+v, want class ErrMaybeExecuted, and outcome failed only under FailClosed",
				mode, o)
		}
		if s := l.Stats(); s.Degraded+s.Failed != 1 || (s.Failed == 1) != (mode == store.FailClosed) {
			t.Errorf("%v: got stats %+v, want 1 failed under FailClosed and else 1 degraded", mode, s)
		}
	}
}

// hanging fails after a while.
type hanging time.Duration

func (h hanging) Process(_ context.Context, cmd redis.Cmder) error {
	time.Sleep(time.Duration(h))
	redistest.Write(cmd)
	err := errors.New("nobody answered")
	cmd.SetErr(err)
	return err
}

// TestTheObserverHearsHowLongItTook in every mode: as long as the caller waited.
func TestTheObserverHearsHowLongItTook(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		synctest.Test(t, func(t *testing.T) {
			const took = 30 * time.Millisecond
			var heard observations
			l := must(limit.New(heard.of(t, hanging(took), "p"), "slow", []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, &limit.Options{Fail: mode}))(t)
			if _, err := l.Take(t.Context(), "s"); (err != nil) != (mode == store.FailClosed) {
				t.Fatalf("Fail is %v: got the error %v, want one only under FailClosed", mode, err)
			}
			if o := heard.last(t); o.Duration != took {
				t.Errorf("%v: got a duration of %v, want %v", mode, o.Duration, took)
			}
		})
	}
}

// TestALimiterOfWithSharesStats: a limiter and one that With made from it report the same
// counts, of the decisions of both, and their common local state.
func TestALimiterOfWithSharesStats(t *testing.T) {
	t.Parallel()
	l := newTestLocal(t, nil, limit.FixedWindow{Limit: 1, Window: time.Hour})
	other := must(l.With(limit.FixedWindow{Limit: 1, Window: time.Hour}, limit.FixedWindow{Limit: 5, Window: time.Hour}))(t)
	for range 2 {
		must(l.Take(t.Context(), "s"))(t)
	}
	if d, err := other.Take(t.Context(), "s"); err != nil || d.Allowed {
		t.Errorf("a take by the limiter of With: got %+v, %v, want a denial", d, err)
	}
	for name, s := range map[string]limit.Stats{"the limiter": l.Stats(), "the one of With": other.Stats()} {
		if s.Allowed != 1 || s.Denied != 2 || s.LocalStates != 1 {
			t.Errorf("%s: got %+v, want 1 allowed, 2 denied and 1 local state", name, s)
		}
	}
}

// TestTheObserverHearsOfACallThatNeverBegan, with a duration of zero.
func TestTheObserverHearsOfACallThatNeverBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heard observations
		l := must(limit.New(heard.of(t, leaking{}, "p"), "n", []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, nil))(t)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = l.Take(gone, "s")
		if o := heard.last(t); o.Outcome != store.Canceled || o.Duration != 0 {
			t.Errorf("a take with a canceled context: got the event %+v, want outcome canceled and no duration", o)
		}
	})
}

// TestTheObserverHearsOfAShadowPolicy that would have denied, after the event of the
// decision.
func TestTheObserverHearsOfAShadowPolicy(t *testing.T) {
	t.Parallel()
	var heard observations
	_, rdb := redistest.Miniredis(t)
	l := must(limit.New(heard.of(t, rdb, "p"), "n", []limit.Policy{
		limit.FixedWindow{Name: "enforced", Limit: 9, Window: time.Hour}, limit.Shadow(limit.FixedWindow{Name: "shadow", Limit: 1, Window: time.Hour}),
	}, closed(time.Minute)))(t)
	for range 2 {
		if d, err := l.Take(t.Context(), "s"); err != nil || !d.Allowed {
			t.Fatalf("a take: got %+v, %v, want it allowed: a shadow policy denies none", d, err)
		}
	}
	var got []string
	for _, e := range heard.all {
		got = append(got, string(e.Outcome)+" by "+e.Policy)
	}
	if want := []string{"granted by enforced", "granted by enforced", "shadow denied by shadow"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
