package queue

import (
	"testing"
	"time"
)

// TestALoneCallerAsksByItself, and only a lone caller.
func TestALoneCallerAsksByItself(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		if _, ok := q.beginDirect(); ok {
			t.Error("before the server has answered: got a direct call, want none")
		}
		answers(t, q)
		b, ok := q.beginDirect()
		if !ok {
			t.Fatal("a lone caller: got no direct call, want one")
		}
		if _, ok := q.beginDirect(); ok {
			t.Error("beside a direct call: got a second one, want none")
		}
		var a asked
		a.ask(t.Context(), q, 5, 0)
		a.wg.Wait()
		q.endDirect(b, Answered, false)
		q.mu.Lock()
		q.lastCalls = 5 // as if one batch had taken all of them
		q.mu.Unlock()
		if _, ok := q.beginDirect(); ok {
			t.Error("after a batch of several: got a direct call, want none")
		}
		answers(t, q)
		b, ok = q.beginDirect()
		if !ok {
			t.Fatal("after a batch of one: got no direct call, want one")
		}
		q.endDirect(b, Ignored, false)
		q.turn.note(2*punctual, q.now())
		if _, ok := q.beginDirect(); ok {
			t.Error("while turns are long: got a direct call, want none")
		}
		time.Sleep(3 * time.Duration(turnSpan))
		q.turn.note(0, q.now())
		if b, ok = q.beginDirect(); !ok {
			t.Fatal("after turns are short again: got no direct call, want one")
		}
		q.endDirect(b, Unanswered, false)
		if _, ok := q.beginDirect(); ok {
			t.Error("to a silent server: got a direct call, want none")
		}
		if n := len(d.sent()) + 1; d.noted(Answered) != n || d.noted(Unanswered) != 1 {
			t.Errorf("the noted results: got %v, want %d answers and one that is missing", d.notes, n)
		}
	})
}
