package queue

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestALateSweepLooksAgain: if a timer is late, the process had no CPU, and the answer
// may have arrived.
func TestALateSweepLooksAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		resume := d.stop()
		result := make(chan error, 1)
		c := new(call)
		go func() { result <- q.Do(withBudget(t.Context()), c) }()
		synctest.Wait()
		q.mu.Lock()
		q.alarm.timer.Stop() // it does not come
		q.mu.Unlock()
		time.Sleep(budget + 2*time.Duration(punctual))
		q.sweep()
		synctest.Wait()
		select {
		case err := <-result:
			t.Fatalf("a late sweep: got %v, want the call to go on", err)
		default:
		}
		resume()
		if err := <-result; err != nil {
			t.Errorf("an answer after a late sweep: got %v, want no error", err)
		}
	})
}

// TestAProcessWithoutCPU has goroutines that compute. Other goroutines wait for their
// turn, so answers are read late. These answers count, also after an answer was lost.
// Without an answer, the wait ends.
func TestAProcessWithoutCPU(t *testing.T) {
	t.Parallel()
	for _, turn := range []time.Duration{40 * time.Millisecond, 80 * time.Millisecond} {
		for _, known := range []bool{true, false} { // false: as if a turn took no time
			inBubble(t, &double{slower: turn + time.Duration(unpolled)}, func(t *testing.T, d *double, q *Queue) {
				if known {
					q.gosched = func() { time.Sleep(turn) }
				}
				var a asked
				for range 20 {
					a.ask(t.Context(), q, 20, 0)
					a.wg.Wait()
				}
				if (a.errs[nil] == 400) != known {
					t.Errorf("a turn of %v, known: %t: got %d answers and %d in doubt of 400", turn, known, a.errs[nil], a.doubt)
				}
				if known {
					d.set(func() { d.result = Unanswered })
					a.ask(t.Context(), q, 1, 0)
					a.wg.Wait()
					d.set(func() { d.result = Answered })
					before := a.errs[nil]
					for range 3 {
						a.ask(t.Context(), q, 5, 0)
						a.wg.Wait()
					}
					if n := a.errs[nil] - before; n != 15 {
						t.Errorf("a turn of %v, after a lost answer: got %d answers of 15", turn, n)
					}
				}
				resume := d.stop()
				a.took = 0
				a.ask(t.Context(), q, 20, 0)
				a.wg.Wait()
				most := budget
				if known {
					most += 3*turn + time.Duration(unpolled) + 3*turn
				}
				if a.took < budget || a.took > most {
					t.Errorf("a turn of %v without an answer: got an end after %v, want it within %v", turn, a.took, most)
				}
				resume()
			})
		}
	}
}

// TestATimeThatHasPassedIsNoTurn: if a call joins so late that its alarm is due at once,
// no goroutine waited for a processor.
func TestATimeThatHasPassedIsNoTurn(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, _ *double, q *Queue) {
		answers(t, q)
		q.mu.Lock()
		q.alarm.at = 0
		q.alarm.set(q, q.now(), q.now()-int64(budget))
		q.mu.Unlock()
		synctest.Wait()
		if grace := q.turn.grace(); grace != 0 {
			t.Errorf("after an alarm that was due at once: got a grace of %v, want none", time.Duration(grace))
		}
	})
}

// TestALoneCallThatEndsLate says something about this process, not about the server.
func TestALoneCallThatEndsLate(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		for _, late := range []time.Duration{0, 2 * time.Duration(punctual)} {
			answers(t, q)
			time.Sleep(budget) // so that no alarm is set
			b, ok := q.beginLone(new(call))
			if !ok {
				t.Fatal("a lone caller: got no lone call, want one")
			}
			before := d.noted(Unanswered)
			time.Sleep(budget + late)
			q.endLone(b, Unanswered, true)
			if lost := d.noted(Unanswered) > before; lost == (late > 0) || (q.turn.grace() > 0) != (late > 0) {
				t.Errorf("an end %v after the budget: got lost %t and a grace of %v", late, lost, time.Duration(q.turn.grace()))
			}
		}
	})
}

// TestAProcessThatHasCPUAgain: callers no longer wait longer than the budget.
func TestAProcessThatHasCPUAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, &double{slower: 80 * time.Millisecond}, func(t *testing.T, d *double, q *Queue) {
		var turn atomic.Int64
		turn.Store(int64(80 * time.Millisecond))
		q.gosched = func() { time.Sleep(time.Duration(turn.Load())) }
		var a asked
		a.ask(t.Context(), q, 20, 0)
		a.wg.Wait()
		time.Sleep(80 * time.Millisecond)
		if q.turn.grace() == 0 {
			t.Error("while turns take 80ms: got no grace, want some")
		}
		turn.Store(0)
		d.set(func() { d.slower = 0 })
		time.Sleep(3 * time.Duration(turnSpan))
		answers(t, q)
		resume := d.stop()
		a.took = 0
		a.ask(t.Context(), q, 20, 0)
		a.wg.Wait()
		if a.took != budget {
			t.Errorf("without an answer: got an end after %v, want %v", a.took, budget)
		}
		resume()
	})
}
