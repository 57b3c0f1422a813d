package queue

import (
	"testing"
	"time"
)

// TestALoneCallerAsksByItself, and only then.
func TestALoneCallerAsksByItself(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		if _, ok := q.BeginDirect(); ok {
			t.Error("got a direct call before the server has answered, want none")
		}
		answers(t, q)
		b, ok := q.BeginDirect()
		if !ok {
			t.Fatal("got no direct call of a lone caller")
		}
		if _, ok := q.BeginDirect(); ok {
			t.Error("got a second direct call beside the first, want none")
		}
		var a asked
		a.ask(t.Context(), q, 5, 0)
		a.wg.Wait()
		q.EndDirect(b, Answered, false)
		q.mu.Lock()
		q.lastCalls = 5 // as if one batch had taken all of them
		q.mu.Unlock()
		if _, ok := q.BeginDirect(); ok {
			t.Error("got a direct call after a batch of several, want none")
		}
		answers(t, q)
		b, ok = q.BeginDirect()
		if !ok {
			t.Fatal("got no direct call after a batch of one")
		}
		q.EndDirect(b, Ignored, false)
		q.turn.note(2*punctual, q.now())
		if _, ok := q.BeginDirect(); ok {
			t.Error("got a direct call while turns are long, want none")
		}
		time.Sleep(3 * time.Duration(turnSpan))
		q.turn.note(0, q.now())
		if b, ok = q.BeginDirect(); !ok {
			t.Fatal("got no direct call when turns are short again")
		}
		q.EndDirect(b, Unanswered, false)
		if _, ok := q.BeginDirect(); ok {
			t.Error("got a direct call to a silent server, want none")
		}
		if n := len(d.sent()) + 1; d.noted(Answered) != n || d.noted(Unanswered) != 1 {
			t.Errorf("the server was told of %v, want %d answers and one that is missing", d.notes, n)
		}
	})
}
