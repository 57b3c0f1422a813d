package labels_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
	"github.com/neap-go/neap/internal/labels/labelstest"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestEveryOutcome counts each outcome of each primitive on a real server, as it was met.
func TestEveryOutcome(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	st := storetest.Open(t, srv.Unhurried(t), store.Options{})
	seen := map[labels.Labels]*atomic.Int64{}
	table := labels.NewTable(func(l labels.Labels) *atomic.Int64 {
		seen[l] = new(atomic.Int64)
		return seen[l]
	})
	st.Observe(func(_ context.Context, e store.Event) { table.Of(&e).Add(1) })
	server := func() store.Gauge {
		for _, g := range table.Read(st) {
			if g.Primitive == store.Server {
				return g
			}
		}
		t.Fatal("got no server")
		return store.Gauge{}
	}
	answers := func(when string, want bool) func() {
		return func() {
			if g := server(); (!g.Lost && !g.Open) != want {
				t.Errorf("the server %s: got %+v, want it to answer: %t", when, g, want)
			}
		}
	}
	counts := labelstest.Play{
		Held: answers("before the outage", true), Away: answers("in the outage", false), Back: answers("after the outage", true),
	}.Run(t, srv, st)
	all := map[labels.Labels]int{}
	for l, n := range seen {
		all[l] = int(n.Load())
		if l.Class == labels.Unknown {
			t.Errorf("%v: got a class that is not known", l)
		}
	}
	spell := func(l labels.Labels) string {
		return fmt.Sprintf("%s %s %q %s change=%t shadow=%t degraded=%t answered=%t",
			l.Primitive, l.Name, l.Policy, l.Result(), l.Change, l.Shadow(), l.Degraded(), l.Class == labels.None)
	}
	labelstest.Compare(t, labelstest.Spell(all, spell), labelstest.Spell(counts, spell))
}

// TestClasses looks for a text of each class, and for another text if the class is none of them.
func TestClasses(t *testing.T) {
	t.Parallel()
	for class, want := range map[error]string{
		nil: "", script.ErrNotExecuted: "not_executed", script.ErrMaybeExecuted: "maybe_executed",
		script.ErrConfiguration: "configuration", script.ErrFailed: "failed",
		context.Canceled: "canceled", context.DeadlineExceeded: "deadline_exceeded", errors.New("h0stile"): "_OTHER",
	} {
		if got := labels.Of(&store.Event{Outcome: store.Granted, Class: class}).Class.String(); got != want {
			t.Errorf("the class of %v: got %q, want %q", class, got, want)
		}
	}
	for _, c := range []struct {
		outcome store.Outcome
		class   error
		want    bool
	}{
		{store.Granted, script.ErrMaybeExecuted, true}, {store.Denied, script.ErrNotExecuted, true}, {store.Granted, nil, false},
		{store.Failed, script.ErrNotExecuted, false}, {store.Canceled, context.Canceled, false},
	} {
		if got := labels.Of(&store.Event{Outcome: c.outcome, Class: c.class}).Degraded(); got != c.want {
			t.Errorf("%s with the class %v: got degraded %t, want %t", c.outcome, c.class, got, c.want)
		}
	}
	if got := labels.Of(&store.Event{Outcome: store.Failed}).Class; got != labels.Unknown {
		t.Errorf("an answer that came too late: got the class %q, want _OTHER", got)
	}
}
