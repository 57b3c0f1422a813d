package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestALoneCallSaysHowItEnded: a caller that left says nothing about the server. A budget
// that ended does. A short call does not go by itself.
func TestALoneCallSaysHowItEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patience   time.Duration // of the caller, which then cancels; 0 means that it waits
		deadline   time.Duration // of the call
		alone      int
		left       int
		unanswered int
	}{
		"its caller leaves": {patience: budget / 2, deadline: budget, alone: 1, left: 1},
		"its budget ends":   {deadline: budget, alone: 1, unanswered: 1},
		"it is short":       {deadline: budget / 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			defer settle()
			d := new(double)
			q := New(d, budget, true)
			answers(t, q)
			d.set(func() { d.alone = 0 })
			resume := d.stop()
			defer resume()
			due := time.Now().Add(budget)
			ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(c.deadline))
			defer cancel()
			if c.patience > 0 {
				time.AfterFunc(c.patience, cancel)
			}
			_ = q.Do(ctx, &call{due: due})
			d.mu.Lock()
			alone, left, unanswered := d.alone, d.left, d.notes[Unanswered]
			d.mu.Unlock()
			if alone != c.alone || left != c.left || unanswered != c.unanswered {
				t.Errorf("%s: got %d calls that went by themselves, %d callers that left and %d calls noted without an answer, want %d, %d and %d",
					name, alone, left, unanswered, c.alone, c.left, c.unanswered)
			}
		})
	}
}

// TestALoneCallerAsksByItself, and only a lone caller.
func TestALoneCallerAsksByItself(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		if _, ok := q.beginLone(new(call)); ok {
			t.Error("before the server has answered: got a lone call, want none")
		}
		answers(t, q)
		b, ok := q.beginLone(new(call))
		if !ok {
			t.Fatal("a lone caller: got no lone call, want one")
		}
		if _, ok := q.beginLone(new(call)); ok {
			t.Error("beside a lone call: got a second one, want none")
		}
		var a asked
		a.ask(t.Context(), q, 5, 0)
		a.wg.Wait()
		q.endLone(b, Answered, false)
		q.mu.Lock()
		q.lastCalls = 5 // as if one batch had taken all of them
		q.mu.Unlock()
		if _, ok := q.beginLone(new(call)); ok {
			t.Error("after a batch of several: got a lone call, want none")
		}
		answers(t, q)
		b, ok = q.beginLone(new(call))
		if !ok {
			t.Fatal("after a batch of one: got no lone call, want one")
		}
		q.endLone(b, Ignored, false)
		q.turn.note(2*punctual, q.now())
		if _, ok := q.beginLone(new(call)); ok {
			t.Error("while turns are long: got a lone call, want none")
		}
		time.Sleep(3 * time.Duration(turnSpan))
		q.turn.note(0, q.now())
		if b, ok = q.beginLone(new(call)); !ok {
			t.Fatal("after turns are short again: got no lone call, want one")
		}
		q.endLone(b, Unanswered, false)
		if _, ok := q.beginLone(new(call)); ok {
			t.Error("to a silent server: got a lone call, want none")
		}
		if n := len(d.sent()) + 1; d.noted(Answered) != n || d.noted(Unanswered) != 1 {
			t.Errorf("the noted results: got %v, want %d answers and one that is missing", d.notes, n)
		}
	})
}

// TestALoneCallThatDoesNotEndIsLost when its budget has ended: the calls after it are sent.
func TestALoneCallThatDoesNotEndIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer settle()
		d := new(double)
		q := New(d, budget, true)
		answers(t, q)
		resume := d.hold()
		var stuck, beside, after asked
		lone := &call{due: time.Now().Add(budget)}
		stuck.wg.Go(func() { _ = q.Do(withBudget(t.Context()), lone) })
		synctest.Wait()
		d.set(func() { d.holds = nil })
		time.Sleep(budget * 3 / 4) // so that its answer is overdue
		beside.ask(t.Context(), q, 5, 0)
		beside.wg.Wait()
		after.ask(t.Context(), q, 5, 0)
		after.wg.Wait()
		if after.errs[nil] != 5 || d.noted(Unsent) == 0 || d.alone != 1 {
			t.Errorf("after a lone call that does not end: got %v, %d notes of calls that were not sent, and %d lone calls; want 5 answers, some, and 1",
				after.errs, d.noted(Unsent), d.alone)
		}
		resume()
		stuck.wg.Wait()
		if lone.state.Load() != withdrawn {
			t.Error("the lone call: got it written after it was lost, want it withdrawn")
		}
		if g := q.grace(q.now()); g != 0 {
			t.Errorf("got a grace of %v, want none: the process was not short of CPU", time.Duration(g))
		}
		if n := q.calls; n != 0 {
			t.Errorf("got %d calls in flight, want none", n)
		}
	})
}
