package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestDrainWaitsForWhatGoesOn: each primitive has something in doubt, and Drain returns
// when Redis has said how it ended.
func TestDrainWaitsForWhatGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		st := s.store
		if err := st.Drain(t.Context()); err != nil {
			t.Errorf("Drain with nothing in the background: got %v, want no error", err)
		}
		s.rdb.gone.Store(true)
		for name, end := range s.ends() {
			if err := end(t.Context()); err == nil {
				t.Errorf("%s with Redis gone: got an answer, want an error", name)
			}
		}
		for name, ask := range s.asks() {
			if err := ask(t.Context()); err == nil {
				t.Errorf("%s with Redis gone: got an answer, want an error", name)
			}
		}
		undoing := func() int {
			stock := s.stock.Stats()
			guard := s.guard.Stats()
			return s.slots.Stats().Undoing + s.lock.Stats().Undoing + guard.Undoing + guard.Concluding + stock.Undoing + stock.Concluding
		}
		if undoing() < 4 {
			t.Fatalf("this test needs background tasks: got %d undone or concluded, want at least 4", undoing())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := st.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "are left without an answer") {
			t.Errorf("Drain while Redis is gone: got %v, want how much is left", err)
		}
		s.rdb.gone.Store(false)
		if err := st.Drain(t.Context()); err != nil || undoing() != 0 {
			t.Errorf("Drain when Redis is back: got %v and %d in doubt still, want no error and 0", err, undoing())
		}
		s.finish(t)
	})
}
