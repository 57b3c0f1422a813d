package console

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

func granted(policy string) store.Event {
	return store.Event{Primitive: store.Limit, Name: "api", Policy: policy, Outcome: store.Granted}
}

// hear has a timeline observe events.
func (t *timeline) hear(events ...store.Event) {
	for _, e := range events {
		t.observe(context.Background(), e)
	}
}

// sums adds up what is shown, by line.
func (t *timeline) sums() map[string]map[string]uint32 {
	now := t.now()
	all := map[string]map[string]uint32{}
	for _, l := range t.read(now-shown+1, now) {
		key := fmt.Sprintf("%s/%s/%s/%t", l.Primitive, l.Name, l.Policy, l.Other)
		all[key] = map[string]uint32{}
		for _, counts := range l.Seconds {
			for name, n := range counts {
				all[key][name] += n
			}
		}
	}
	return all
}

func TestEventsAreCountedAsWhatTheyAre(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]store.Event{
		"granted":          {Outcome: store.Granted},
		"denied":           {Outcome: store.Denied},
		"banned":           {Outcome: store.Denied, Banned: true},
		"failed":           {Outcome: store.Failed, Class: script.ErrNotExecuted},
		"degraded granted": {Outcome: store.Granted, Class: script.ErrMaybeExecuted},
		"degraded denied":  {Outcome: store.Denied, Class: script.ErrMaybeExecuted, Banned: true},
		"shadow denied":    {Outcome: store.ShadowDenied},
		"":                 {Outcome: store.Canceled, Class: context.Canceled},
	} {
		s, counts := seriesOf(&e)
		if counts != (want != "") || counts && names[s] != want {
			t.Errorf("%+v: got %q, %t, want %q", e, names[s], counts, want)
		}
	}
}

// TestEveryOutcomeIsCounted: the outcomes are read from the source of package store, so that none is missing here. The calls
// whose own context ended, and servers that answer again, are not counted.
func TestEveryOutcomeIsCounted(t *testing.T) {
	t.Parallel()
	all := outcomes(t)
	for _, known := range []store.Outcome{store.Granted, store.Disagreed, store.Canceled, store.Back} {
		if !slices.Contains(all, known) {
			t.Fatalf("got the outcomes %q from the source, want %q too", all, known)
		}
	}
	for _, o := range all {
		want := o != store.Canceled && o != store.Back
		if _, counts := seriesOf(&store.Event{Outcome: o}); counts != want {
			t.Errorf("%s: got counted %t, want %t", o, counts, want)
		}
	}
}

// outcomes are the constants of type Outcome in package store.
func outcomes(t *testing.T) (all []store.Outcome) {
	t.Helper()
	file := must(parser.ParseFile(token.NewFileSet(), "../core/store/observe.go", nil, 0))(t)
	for node := range ast.Preorder(file) {
		spec, is := node.(*ast.ValueSpec)
		if !is {
			continue
		}
		if of, is := spec.Type.(*ast.Ident); is && of.Name == "Outcome" {
			all = append(all, store.Outcome(must(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value))(t)))
		}
	}
	return all
}

// TestTheLastMinute: an event is shown for 60 seconds in its own, and its place is empty when it comes round again.
func TestTheLastMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := newTimeline()
		line.hear(granted("p"), granted("p"), store.Event{Primitive: store.Limit, Name: "api", Policy: "p", Outcome: store.Denied})
		time.Sleep(59*time.Second + 999*time.Millisecond)
		line.hear(granted("p"))
		got := line.read(1, line.now())
		if len(got) != 1 || len(got[0].Seconds) != 2 || got[0].Seconds[1]["granted"] != 2 || got[0].Seconds[1]["denied"] != 1 || got[0].Seconds[60]["granted"] != 1 {
			t.Errorf("got %+v, want 2 granted and 1 denied in the first second, 1 granted in the 60th", got)
		}
		time.Sleep(time.Millisecond)
		if got := line.sums(); !maps.Equal(got["limit/api/p/false"], map[string]uint32{"granted": 1}) {
			t.Errorf("a minute later: got %v, want the second event alone", got)
		}
		time.Sleep(4 * time.Second) // the 65th second has the place of the first
		line.hear(granted("p"))
		if got := line.read(line.now(), line.now()); len(got) != 1 || !maps.Equal(got[0].Seconds[65], map[string]uint32{"granted": 1}) {
			t.Errorf("in the place of another second: got %+v, want 1 granted alone", got)
		}
		time.Sleep(time.Hour)
		if got := line.read(line.now()-shown+1, line.now()); len(got) != 0 {
			t.Errorf("after an hour: got %+v, want nothing", got)
		}
	})
}

// TestMemoryIsBounded: of 10,000 policies 100 are told apart, the others are counted together, and rows that are over make room.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := newTimeline()
		for i := range 10_000 {
			line.hear(granted(fmt.Sprint("p", i)))
		}
		got := line.sums()
		if len(got) != maxRows+1 || got["limit///true"]["granted"] != 10_000-maxRows {
			t.Errorf("got %d lines and %v of others, want %d and %d", len(got), got["limit///true"], maxRows+1, 10_000-maxRows)
		}
		line.hear(store.Event{Primitive: store.Lock, Name: "l", Outcome: store.Held}, store.Event{Primitive: "new", Outcome: store.Held}, store.Event{Primitive: store.Server, Outcome: store.Lost})
		if got := line.sums(); got["lock///true"]["held"] != 1 || len(got) != maxRows+2 {
			t.Errorf("got %v of other locks in %d lines, want 1, and none of a server", got["lock///true"], len(got))
		}
		time.Sleep(30 * time.Second)
		line.hear(granted("p7"))
		time.Sleep(30 * time.Second)
		line.hear(granted("late"), granted("p7"))
		if got := line.sums(); got["limit/api/late/false"]["granted"] != 1 || got["limit/api/p7/false"]["granted"] != 2 || len(*line.rows.Load()) != 2 {
			t.Errorf("when all but p7 are over: got %v in %d rows, want p7 kept and one made", got, len(*line.rows.Load()))
		}
	})
}

// TestNothingIsLost while many observe and one reads.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	line := newTimeline()
	var all sync.WaitGroup
	const callers, each = 8, 5000
	for i := range callers {
		all.Go(func() {
			for n := range each {
				line.hear(granted(fmt.Sprint("p", (i+n)%150)))
				if n%500 == 0 {
					line.sums()
				}
			}
		})
	}
	all.Wait()
	var sum uint32
	for _, counts := range line.sums() {
		sum += counts["granted"]
	}
	if sum != callers*each {
		t.Errorf("got %d, want %d", sum, callers*each)
	}
}

func TestObserveAllocations(t *testing.T) {
	line := newTimeline()
	e := granted("p")
	if n := testing.AllocsPerRun(100, func() { line.observe(t.Context(), e) }); n > 0 {
		t.Errorf("got %v allocations an event, want none", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	line := newTimeline()
	e := granted("p")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			line.observe(b.Context(), e)
		}
	})
}
