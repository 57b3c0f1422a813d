package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
)

// Only a refusal that is the final answer means that the handler has not run. A handler
// may make other requests with its context, and go on if one of them is refused.
func TestIdempotentRefusedInside(t *testing.T) {
	t.Parallel()
	inner := gate.RateLimit(hourly(t, 1), failing(gate.Refuse(409, "No")), nil)
	for name, c := range map[string]struct {
		seen  func(refusal gate.Reply) *gate.Reply
		state idempotency.State
	}{
		"the refusal":         {func(r gate.Reply) *gate.Reply { return &r }, idempotency.Free},
		"part of the refusal": {func(r gate.Reply) *gate.Reply { r.Body, r.Partial = nil, true; return &r }, idempotency.Free},
		"the same answer":     {func(r gate.Reply) *gate.Reply { r.Refused = false; return &r }, idempotency.Done},
		"another answer":      {func(gate.Reply) *gate.Reply { return answered(409) }, idempotency.Done},
		"a break":             {func(gate.Reply) *gate.Reply { return answered(500) }, idempotency.Doubtful},
		"done":                {func(gate.Reply) *gate.Reply { return booked("tea") }, idempotency.Done},
		"a panic":             {func(gate.Reply) *gate.Reply { return nil }, idempotency.Doubtful},
	} {
		guard, _ := guardsOf(t, idempotency.Reject{}, idempotency.Options{})
		options := &gate.IdempotentOptions{Replay: func(r *gate.Reply) bool {
			if r.Refused {
				t.Error("Replay was asked about a refusal, want it asked about other answers only")
			}
			return r.Status < 500
		}}
		p := gate.Idempotent(guard, everyone, options).Enter(posting("k", ""))
		refusal := inner.Enter(&request{ctx: p.Context, method: "POST", path: "/orders"})
		p.Leave(c.seen(refusal.Reply.Sent()))
		if r, err := guard.Inspect(t.Context(), ordered); r.State != c.state || err != nil {
			t.Errorf("%s: got %+v, %v, want the state %v", name, r, err, c.state)
		}
	}
}

// A handler that sends its own request through the gate again does not wait for itself.
// What it has done is unknown.
func TestIdempotentHandlerSendsItsOwnRequest(t *testing.T) {
	t.Parallel()
	guard, _ := guardsOf(t, idempotency.Reject{}, idempotency.Options{})
	var h hook
	g := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{OnError: h.hear})
	p := g.Enter(posting("k", ""))
	inner := posting("k", "")
	inner.ctx = p.Context
	q := g.Enter(inner)
	if err := h.take(); status(q) != 500 || !errors.Is(err, gate.ErrWiring) {
		t.Errorf("got %+v, and the hook told %v, want 500 and %v", q.Reply, err, gate.ErrWiring)
	}
	sent := q.Reply.Sent()
	p.Leave(&sent)
	if r, err := guard.Inspect(t.Context(), ordered); r.State != idempotency.Doubtful || err != nil {
		t.Errorf("got %+v, %v, want the state %v", r, err, idempotency.Doubtful)
	}
}

// If it stays unknown what was done, the hook is told immediately, with the claim and its
// key.
func TestIdempotentReportsDoubt(t *testing.T) {
	t.Parallel()
	for policy, want := range map[idempotency.Policy]error{idempotency.Retry{}: nil, idempotency.Reject{}: idempotency.ErrInDoubt} {
		guard, _ := guardsOf(t, policy, idempotency.Options{})
		var told error
		var key string
		p := gate.Idempotent(guard, everyone, &gate.IdempotentOptions{OnError: func(r gate.Request, err error) {
			told = err
			if c, ok := idempotency.FromContext(r.Context()); ok {
				key = c.Key()
			}
		}}).Enter(posting("k", ""))
		p.Leave(answered(500))
		if !errors.Is(told, want) || want != nil && key != ordered || (guard.Stats().Doubted == 1) != (want != nil) {
			t.Errorf("%v: the hook was told %v of %q, and stats are %+v, want %v of %q",
				policy, told, key, guard.Stats(), want, ordered)
		}
	}
}

// A handler that has concluded its claim has not given up, whatever it answers, and not for
// the gates outside either. The hook is told if it left the request in doubt.
func TestIdempotentHandlerConcludes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome idempotency.Outcome
		answer  *gate.Reply
		told    error
		state   idempotency.State
	}{
		"nothing, and a 503":    {idempotency.NothingDone(), answered(503), nil, idempotency.Free},
		"done, and a 500":       {idempotency.DoneWithout(), answered(500), nil, idempotency.NoResult},
		"done, and empty":       {idempotency.DoneWithout(), answered(200), nil, idempotency.NoResult},
		"unknown, and a 202":    {idempotency.Unknown(), answered(202), idempotency.ErrInDoubt, idempotency.Doubtful},
		"unknown, and a broken": {idempotency.Unknown(), nil, idempotency.ErrInDoubt, idempotency.Doubtful},
	} {
		guard, _ := guardsOf(t, idempotency.Reject{}, idempotency.Options{})
		outside, _ := guardsOf(t, idempotency.Reject{}, idempotency.Options{})
		var h hook
		p := gate.Chain(
			gate.Idempotent(outside, everyone, nil), gate.Idempotent(guard, everyone, &gate.IdempotentOptions{OnError: h.hear}),
		).Enter(posting("k", ""))
		claim, ok := idempotency.FromContext(p.Context)
		if !ok || !claim.By(guard) {
			t.Fatalf("%s: got no claim of the guard in the handler's context", name)
		}
		if err := claim.Conclude(t.Context(), c.outcome); err != nil {
			t.Errorf("%s: Conclude: got %v, want no error", name, err)
		}
		p.Leave(c.answer)
		if told := h.take(); !errors.Is(told, c.told) || c.told == nil && told != nil {
			t.Errorf("%s: the hook was told %v, want %v", name, told, c.told)
		}
		if r, err := guard.Inspect(t.Context(), ordered); r.State != c.state || err != nil {
			t.Errorf("%s: got %+v, %v, want the state %v", name, r, err, c.state)
		}
		if r, err := outside.Inspect(t.Context(), ordered); c.answer != nil && c.answer.Status == 200 && (r.State != idempotency.Done || err != nil) {
			t.Errorf("%s: outside: got %+v, %v, want %v", name, r, err, idempotency.Done)
		}
	}
}

// A deadline that was set outside holds for the handler. The end of the request does not
// end its context.
func TestIdempotentDeadline(t *testing.T) {
	t.Parallel()
	guard, _ := guards(t, idempotency.Options{})
	outer, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	r := posting("k", "")
	r.ctx = outer
	p := gate.Idempotent(guard, everyone, nil).Enter(r)
	cancel()
	want, _ := outer.Deadline()
	if got, ok := p.Context.Deadline(); !ok || !got.Equal(want) || p.Context.Err() != nil {
		t.Errorf("got the deadline %v, %v, and the context error %v, want %v and no error",
			got, ok, p.Context.Err(), want)
	}
	p.Leave(booked("tea"))
	if p.Context.Err() == nil {
		t.Error("the context did not end, want it to end when the claim is lost")
	}
}
