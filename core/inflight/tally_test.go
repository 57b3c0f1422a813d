package inflight

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/internal/redistest"
)

// TestAnAnswerFromBeforeALossCountsNothing: Redis had the slot, and may have lost it since.
func TestAnAnswerFromBeforeALossCountsNothing(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	c := must(New(rdb, "tally", 2, &Options{Budget: time.Minute}))(t)
	s := must(c.Try(t.Context(), "s"))(t)
	before := c.held.noted()
	c.held.gone([]*Slot{s})
	c.held.learn(s, before, true, nil, ask.Doubt{})
	if counted, _ := c.held.look(s); counted {
		t.Error("an answer from before the loss: got the slot counted, want it to be taken again")
	}
	c.held.learn(s, c.held.noted(), true, nil, ask.Doubt{})
	if counted, _ := c.held.look(s); !counted {
		t.Error("an answer from after the loss: got the slot not counted, want it counted")
	}
	if err := s.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}
