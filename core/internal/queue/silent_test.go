package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestAStalledServer stops answering under load. At most the calls that were in flight
// are then in doubt, and no caller waits longer than its budget.
func TestAStalledServer(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		var a asked
		var resume func()
		flying := 0
		for i := range 400 { // one each millisecond
			if i == 100 {
				resume = d.stop()
				q.mu.Lock()
				flying = q.calls
				q.mu.Unlock()
			}
			a.ask(t.Context(), q, 20, 0)
			time.Sleep(time.Millisecond)
		}
		a.mu.Lock()
		doubt := a.doubt
		a.mu.Unlock()
		// The server stalls while calls leave, so the calls that leave until it counts as
		// late are in doubt too.
		if most := flying + 20*int(budget/2/time.Millisecond); doubt == 0 || doubt > most {
			t.Errorf("calls in doubt: got %d, want 1 to %d", doubt, most)
		}
		if n := d.noted(Unanswered) + d.noted(Unsent); n < 20 {
			t.Errorf("missing answers noted: got %d, want at least 20", n)
		}
		sent := len(d.sent())
		a.ask(t.Context(), q, 100, 0)
		time.Sleep(2 * budget)
		if n := len(d.sent()); n != sent {
			t.Errorf("while the server is silent: got %d batches sent, want none", n-sent)
		}
		resume()
		time.Sleep(2 * budget)
		var after asked
		after.ask(t.Context(), q, 100, 0)
		after.wg.Wait()
		a.wg.Wait()
		if after.errs[nil] != 100 || a.doubt != doubt {
			t.Errorf("after the stall: got %v and %d more in doubt, want 100 answers and none", after.errs, a.doubt-doubt)
		}
		if a.took > budget {
			t.Errorf("the longest wait: got %v, want at most %v", a.took, budget)
		}
	})
}

// TestALostAnswerIsFollowedByAProbe: nothing is sent before the probe is answered.
func TestALostAnswerIsFollowedByAProbe(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		d.set(func() { d.result = Unanswered })
		if err := q.Do(withBudget(t.Context()), new(call)); err != nil { // its own error is in the call
			t.Errorf("a call in a batch that ended: got %v, want no error", err)
		}
		d.set(func() { d.result, d.answer = Answered, Unanswered })
		sent := len(d.sent())
		var a asked
		a.ask(t.Context(), q, 5, 0)
		time.Sleep(budget / 2)
		if n := len(d.sent()); n != sent || d.probed() < 2 {
			t.Errorf("while no probe is answered: got %d batches and %d probes, want none and at least two", n-sent, d.probed())
		}
		d.set(func() { d.answer = Answered })
		a.wg.Wait()
		if a.errs[nil] != 5 {
			t.Errorf("after a probe was answered: got %v, want 5 answers", a.errs)
		}
	})
}

// TestABatchThatIsNotWrittenInTime is lost, and none of its calls may have run.
func TestABatchThatIsNotWrittenInTime(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		resume := d.hold()
		var a asked
		a.ask(t.Context(), q, 10, 0)
		a.wg.Wait()
		time.Sleep(budget)
		if a.errs[context.DeadlineExceeded] != 10 || d.noted(Unsent) == 0 || d.noted(Unanswered) > 0 {
			t.Errorf("got %v, and %d batches noted as unsent and %d as unanswered, want 10 expired calls, batches unsent "+
				"and none unanswered", a.errs, d.noted(Unsent), d.noted(Unanswered))
		}
		resume()
	})
}

// TestNothingIsSentWhileAnAnswerIsLate makes a call each tenth of a budget to a server
// that stands still.
func TestNothingIsSentWhileAnAnswerIsLate(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		resume := d.stop()
		var a asked
		for range 9 {
			a.ask(t.Context(), q, 1, 0)
			time.Sleep(budget / 10)
		}
		if n := len(d.sent()) - 1; n != 6 { // until half a budget after the first
			t.Errorf("while an answer is late: got %d batches, want the 6 that left before the first was late", n)
		}
		resume()
		a.wg.Wait()
	})
}

// TestALateAnswerIsAnAnswer: the server counts as alive again, although no caller waited
// for the answer.
func TestALateAnswerIsAnAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, &double{answer: Unanswered}, func(t *testing.T, d *double, q *Queue) { // probes have none
		answers(t, q)
		resume := d.stop()
		var a asked
		a.ask(t.Context(), q, 1, 0)
		a.wg.Wait()
		resume()
		time.Sleep(2 * trip)
		answers(t, q)
	})
}

// TestCallersThatLeftMakeRoom: only callers that still wait fill the queue of a silent
// server.
func TestCallersThatLeftMakeRoom(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		resume := d.stop()
		var lost, impatient, a asked
		lost.ask(t.Context(), q, 1, 0)
		lost.wg.Wait()
		a.ask(t.Context(), q, 1, 0)
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		impatient.ask(ctx, q, mostWaiting-1, 0)
		synctest.Wait()
		leave()
		impatient.wg.Wait()
		a.ask(t.Context(), q, 1, 0)
		synctest.Wait()
		resume()
		a.wg.Wait()
		if a.errs[ErrFull] > 0 {
			t.Error("a call behind callers that have left: got ErrFull, want room")
		}
	})
}
