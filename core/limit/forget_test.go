package limit_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// TestALogGivesBackItsRoom has every subject store many permits once and few afterwards,
// as after refunds or late in a window. It is not parallel, because it looks at the heap
// of the process.
func TestALogGivesBackItsRoom(t *testing.T) { //nolint:paralleltest // as said
	const states, many, few = 1000, 24, 8
	for name, shrink := range map[string]func(t *testing.T, l *limit.Limiter, subject string){ //nolint:paralleltest // as said
		"by time": func(t *testing.T, l *limit.Limiter, subject string) {
			take(t, l, subject, many)
			time.Sleep(30 * time.Minute)
			take(t, l, subject, few)
			time.Sleep(30 * time.Minute)
			take(t, l, subject, 0)
		},
		"to nothing by time": func(t *testing.T, l *limit.Limiter, subject string) {
			take(t, l, subject, 1000)
			time.Sleep(time.Hour)
			take(t, l, subject, 1)
		},
		"by a refund": func(t *testing.T, l *limit.Limiter, subject string) {
			d := take(t, l, subject, 1000)
			if err := d.Refund(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newTestLocal(t, &limit.Options{MaxLocal: states}, limit.SlidingLog{Limit: 1000, Window: time.Hour})
				before := redistest.HeapInUse()
				for i := range states {
					shrink(t, l, fmt.Sprint("subject-", i))
				}
				each := (int(redistest.HeapInUse()) - int(before)) / states
				t.Logf("%d bytes for each of MaxLocal", each)
				if kept := l.Stats().LocalStates; each > 512 || each < 16 || kept < states*9/10 {
					t.Errorf("got %d bytes for each of MaxLocal, %d states, want 16 to 512, and %d at least",
						each, kept, states*9/10)
				}
				runtime.KeepAlive(l)
			})
		})
	}
}

func TestMaxLocalHoldsASubject(t *testing.T) {
	t.Parallel()
	policies := []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}, limit.FixedWindow{Limit: 3, Window: time.Hour}}
	if _, err := limit.NewLocal("small", policies, &limit.Options{MaxLocal: 1}); err == nil {
		t.Error("NewLocal of two policies with MaxLocal 1: got no error, want one: they would forget each other")
	}
	l := newTestLocal(t, &limit.Options{MaxLocal: 1}, policies[0])
	if _, err := l.With(policies...); err == nil {
		t.Error("With of two policies with MaxLocal 1: got no error, want one: they would forget each other")
	}
	both := newTestLocal(t, &limit.Options{MaxLocal: 2}, policies...)
	take(t, both, "s", 2)
	if d, err := both.Take(t.Context(), "s"); err != nil || d.Allowed {
		t.Errorf("a third permit of 2: got %+v, %v, want a denial", d, err)
	}
}
