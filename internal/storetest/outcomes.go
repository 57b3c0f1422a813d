package storetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/neap-go/neap/core/store"
)

// Outcomes are what observers are told of one primitive, in a synctest bubble.
type Outcomes struct {
	Of store.Primitive

	mu  sync.Mutex
	all []store.Outcome
}

// Observe is a [store.Observer].
func (o *Outcomes) Observe(_ context.Context, e store.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Primitive == o.Of {
		o.all = append(o.all, e.Outcome)
	}
}

// Are fails the test unless these are the outcomes since its last call, in this order.
func (o *Outcomes) Are(tb testing.TB, when string, want ...store.Outcome) {
	tb.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.all, want) {
		tb.Errorf("%s: got the outcomes %q, want %q", when, o.all, want)
	}
	o.all = nil
}
