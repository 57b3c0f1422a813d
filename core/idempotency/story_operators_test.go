package idempotency_test

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
)

func (h *story) resolve(t *testing.T) {
	t.Helper()
	o := h.outcome()
	h.reply = nil
	err := h.guards[h.rng.IntN(len(h.guards))].Resolve(t.Context(), h.subject(), o.Outcome)
	var want error
	switch {
	case o.state == "":
		want = idempotency.ErrUnresolved
	case h.reply == int64(-1):
		want = idempotency.ErrInFlight
	case h.reply != int64(1):
		want = idempotency.ErrNotInDoubt
	}
	switch {
	case !same(err, want):
		h.wrong("Resolve: got %v, want %v", err, want)
	case err == nil && (h.model.state != o.state || o.state == "done" && h.model.result != "p"+o.result):
		h.wrong("resolved as %q: got the record %q, want that state and result", o.state, h.model.text())
	}
}

func (h *story) forget(t *testing.T) {
	t.Helper()
	had := h.model.state != ""
	if got, err := h.guards[0].Forget(t.Context(), h.subject()); err != nil || got != had {
		h.wrong("Forget: got %t, %v, want %t", got, err, had)
	}
}

func (h *story) inspect(t *testing.T) {
	t.Helper()
	h.reply = nil
	got, err := h.guards[0].Inspect(t.Context(), h.subject())
	if err != nil {
		h.wrong("Inspect: got %v, want no error", err)
	}
	m := &h.model
	if m.state == "" {
		if got != (idempotency.Record{}) {
			h.wrong("Inspect: got %+v, want no record", got)
		}
		return
	}
	parts := h.reply.([]any) // the judge has checked that
	want := idempotency.Record{
		State: map[string]idempotency.State{
			"pending": idempotency.Pending, "asking": idempotency.Pending, "free": idempotency.Free,
			"done": idempotency.Done, "gone": idempotency.NoResult, "doubt": idempotency.Doubtful,
		}[m.state],
		Attempt: m.attempt, Fence: m.fence, Size: len(m.result),
		Lease:   time.Duration(parts[2].(int64)) * time.Millisecond,
		Expires: time.Duration(parts[3].(int64)) * time.Millisecond,
	}
	if got != want {
		h.wrong("Inspect: got %+v, want %+v", got, want)
	}
}
