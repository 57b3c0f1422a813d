package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestDrainWaitsForWhatGoesOn: of each primitive something is in doubt, and Drain returns
// when Redis has told what became of it.
func TestDrainWaitsForWhatGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		st := s.store
		if err := st.Drain(t.Context()); err != nil {
			t.Errorf("Drain where nothing goes on: %v", err)
		}
		s.rdb.gone.Store(true)
		for name, end := range s.ends() {
			if err := end(t.Context()); err == nil {
				t.Errorf("%s has an answer of a Redis that is gone", name)
			}
		}
		for name, ask := range s.asks() {
			if err := ask(t.Context()); err == nil {
				t.Errorf("%s has an answer of a Redis that is gone", name)
			}
		}
		undoing := func() int {
			stock := s.stock.Stats()
			guard := s.guard.Stats()
			return s.slots.Stats().Undoing + s.lock.Stats().Undoing + guard.Undoing + guard.Concluding + stock.Undoing + stock.Concluding
		}
		if undoing() < 4 {
			t.Fatalf("%d are undone or concluded: what is this test about?", undoing())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := st.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "are left without an answer") {
			t.Errorf("Drain while Redis is gone: got %v, want how much is left", err)
		}
		s.rdb.gone.Store(false)
		if err := st.Drain(t.Context()); err != nil || undoing() != 0 {
			t.Errorf("Drain when Redis is back: %v, and %d are undone or concluded still", err, undoing())
		}
		s.finish(t)
	})
}
