package idempotency_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/idempotency"
)

func (h *story) begin(t *testing.T) {
	t.Helper()
	i := h.rng.IntN(len(h.guards))
	print := h.model.print
	if h.rng.IntN(4) == 0 {
		print = []string{"", "a", "b"}[h.rng.IntN(3)]
	}
	print = strings.TrimPrefix(print, "-")
	if h.model.state == "doubt" || h.model.situation() == "pending lapsed" {
		i = max(i, h.rng.IntN(len(h.guards))) // "asking" is rare otherwise
	}
	h.finds, h.fails, h.first, h.asked = h.outcome(), nil, nil, 0
	if h.rng.IntN(6) == 0 {
		h.fails = errBooks
	}
	begin := h.guards[i].Begin
	if h.rng.IntN(8) == 0 {
		begin = h.guards[i].BeginAny
	}
	run, err := begin(t.Context(), h.subject(), print)
	c, result := run.Claim, run.Result
	var want error
	claims, replay, n := false, "", &h.stats[i]
	switch first := h.first.(type) {
	case int64:
		if want = idempotency.ErrInFlight; first == 0 {
			want = idempotency.ErrMismatch
		}
	case string:
		state, _, _ := strings.Cut(first, " ")
		replay = strings.TrimPrefix(h.model.result, "p")
		if claims = state == "pending"; state == "asking" {
			claims = h.reconciled(i)
			state = h.model.state
			if h.asked != 1 {
				h.wrong("Reconcile was asked %d times, want once", h.asked)
			}
		}
		switch state {
		case "gone":
			want = idempotency.ErrNoResult
		case "doubt":
			if want = idempotency.ErrInDoubt; h.asked > 0 && h.fails != nil && !errors.Is(err, h.fails) {
				h.wrong("Begin: got %v, want %v of Reconcile in it", err, h.fails)
			}
		}
	}
	switch {
	case (c != nil) != claims || !same(err, want):
		h.wrong("Begin: got claimed %t, %v, want %t, %v", c != nil, err, claims, want)
	case claims:
		n.Begun++
		n.Running++
		if c.Fence() != h.model.fence || c.Attempt() != h.model.attempt || c.Err() != nil || result != nil {
			h.wrong("got a claim of fence %d, attempt %d, %v, %q, want fence %d, attempt %d, no error and no result",
				c.Fence(), c.Attempt(), c.Err(), result, h.model.fence, h.model.attempt)
		}
		h.claims = append(h.claims, &claimed{Claim: c, of: i})
	case want == nil:
		if n.Replayed++; string(result) != replay {
			h.wrong("Begin: got %q, want %q", result, replay)
		}
	case errors.Is(want, idempotency.ErrInFlight):
		n.InFlight++
	case errors.Is(want, idempotency.ErrMismatch):
		n.Mismatched++
	case errors.Is(want, idempotency.ErrNoResult):
		n.NoResult++
	case errors.Is(want, idempotency.ErrInDoubt):
		n.InDoubt++
	}
}

// reconciled reports whether the caller may run after Reconcile has returned, and checks
// that the record says so too.
func (h *story) reconciled(i int) (claims bool) {
	want, n := h.finds.state, &h.stats[i]
	switch {
	case h.fails != nil || want == "":
		want = "doubt"
		n.Abandoned++
		n.Doubted++
	case want == "free":
		want = "asking"
	default:
		n.Completed++
	}
	if h.model.state != want || want == "done" && h.model.result != "p"+h.finds.result {
		h.wrong("Reconcile was asked, and the record is %q, want %s", h.model.text(), want)
	}
	return want == "asking"
}

// claim uses a claim, whatever became of it.
func (h *story) claim(t *testing.T, c *claimed) {
	t.Helper()
	h.reply = nil
	if h.rng.IntN(2) == 0 {
		h.renew(t, c)
	} else {
		h.conclude(t, c)
	}
	if c.cause == nil {
		c.cause = c.err
	}
	if err := c.Err(); !same(err, c.err) || (c.Context().Err() == nil) != (c.err == nil) || !same(context.Cause(c.Context()), c.cause) {
		h.wrong("Err is %v, and the context's cause %v, want %v and %v", err, context.Cause(c.Context()), c.err, c.cause)
	}
	if doubts := errors.Is(c.Err(), idempotency.ErrInDoubt); doubts != c.doubts {
		h.wrong("Err is %v, want it to say that the work is in doubt: %t", c.Err(), c.doubts)
	}
}

// same reports whether an error is the expected one.
func same(err, want error) bool { return errors.Is(err, want) && (want != nil || err == nil) }

func (h *story) renew(t *testing.T, c *claimed) {
	t.Helper()
	before, want := h.calls, c.err
	err := c.Renew(t.Context())
	switch {
	case want != nil:
		if h.calls != before {
			h.wrong("Renew of a claim that is over called Redis, want no call")
		}
	case h.reply == int64(0):
		want = idempotency.ErrConcluded
	case h.reply != int64(1):
		want = idempotency.ErrLost
	}
	if c.err == nil && want != nil {
		h.stats[c.of].Running--
		h.stats[c.of].Lost++
	}
	if c.err = want; !same(err, want) {
		h.wrong("Renew: got %v, want %v", err, want)
	}
}

func (h *story) conclude(t *testing.T, c *claimed) {
	t.Helper()
	o, before, n := h.outcome(), h.calls, &h.stats[c.of]
	var err error
	switch o.state {
	case "done":
		err = c.Conclude(t.Context(), idempotency.DoneWith([]byte(o.result)))
	case "free":
		err = c.Conclude(t.Context(), idempotency.NothingDone())
	default:
		err = c.Conclude(t.Context(), o.Outcome)
	}
	if c.over {
		if h.calls != before {
			h.wrong("the second end of a claim called Redis, want no call")
		}
		return
	}
	c.over = true
	held := c.err == nil
	if held {
		n.Running--
	}
	c.err = idempotency.ErrConcluded
	became := o.state // as the outcome and the policy prescribe
	if became == "" {
		became = "doubt"
		if c.of == 0 {
			became = "free"
		}
	}
	var want error
	switch reply := h.reply; {
	case reply == int64(-2) && became == "free":
		n.Abandoned++
	case reply == int64(-2):
		if n.Abandoned++; held {
			n.Lost++
		}
		want = idempotency.ErrLost
	case reply == int64(-1):
		n.Overtaken++
		want = idempotency.ErrLost
	case o.state == "done" || o.state == "gone":
		if n.Completed++; reply == int64(2) {
			n.Flushed++
		}
	default:
		n.Abandoned++
		if c.doubts = became == "doubt"; c.doubts {
			n.Doubted++
		}
	}
	if !same(err, want) {
		h.wrong("concluded as %q: got %v, want %v", o.state, err, want)
	}
	if reply := h.reply; reply == int64(2) && h.model.state != became {
		h.wrong("concluded as %q: got the state %s, want %s", o.state, h.model.state, became)
	}
	if last := h.events[len(h.events)-1]; last.args[1] != became {
		h.wrong("concluded as %q: got the call %v, want one as %s", o.state, last, became)
	}
}
