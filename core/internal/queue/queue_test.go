package queue

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls, size int
		most        int
	}{
		"by calls": {600, 10, mostCalls},
		"by bytes": {40, mostBytes / 4, 4},
		"a call that is larger than a batch goes alone": {5, mostBytes + 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
				answers(t, q)
				var a asked
				a.ask(t.Context(), q, c.calls, c.size)
				a.wg.Wait()
				most, all := 0, 0
				for _, n := range d.sent() {
					most = max(most, n)
					all += n
				}
				if most > c.most || all != c.calls+1 || a.errs[nil] != c.calls {
					t.Errorf("batches: got sizes %v and %d answers, want at most %d calls in each and %d answers",
						d.sent(), a.errs[nil], c.most, c.calls)
				}
			})
		})
	}
}

// TestTooManyThatWaitAreRefused: a call without room is not sent.
func TestTooManyThatWaitAreRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		resume := d.stop()
		var a asked
		a.ask(t.Context(), q, mostWaiting+300, 0)
		synctest.Wait()
		a.mu.Lock()
		full := a.errs[ErrFull]
		a.mu.Unlock()
		if full == 0 || full > 300 {
			t.Errorf("calls refused: got %d, want 1 to 300", full)
		}
		resume()
		a.wg.Wait()
		if a.errs[nil]+a.errs[ErrFull]+a.errs[context.DeadlineExceeded] != mostWaiting+300 || a.doubt > 0 {
			t.Errorf("the calls: got %v and %d in doubt, want each answered or refused", a.errs, a.doubt)
		}
	})
}

// TestOneBatchUntilTheServerAnswers: a server that was not reached, or has not answered
// yet, gets one batch at a time.
func TestOneBatchUntilTheServerAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, &double{result: Unsent}, func(t *testing.T, d *double, q *Queue) {
		var a asked
		for range 10 {
			a.ask(t.Context(), q, 10, 0)
			synctest.Wait()
			q.mu.Lock()
			if len(q.inFlight) > 1 {
				t.Errorf("before the server answers: got %d batches in flight, want at most one", len(q.inFlight))
			}
			q.mu.Unlock()
			time.Sleep(trip / 4)
		}
		a.wg.Wait()
		if n := len(d.sent()); n < 2 || n > 6 || a.doubt > 0 || d.probed() > 0 {
			t.Errorf("a server that was not reached: got %d batches, %d in doubt, %d probes, want 2 to 6 and none of the others", n, a.doubt, d.probed())
		}
	})
}

func TestACallerThatLeaves(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		resume := d.stop()
		ctx, cancel := context.WithCancel(t.Context())
		var first, second asked
		first.ask(ctx, q, 1, 0)
		synctest.Wait()
		second.ask(ctx, q, 10, 0) // waits for the first
		synctest.Wait()
		cancel()
		first.wg.Wait()
		second.wg.Wait()
		if first.doubt != 1 || second.errs[context.Canceled] != 10 || second.doubt > 0 {
			t.Errorf("callers that left: got %d in doubt of those sent, and %v, %d in doubt of those that wait, want 1, 10 canceled and 0",
				first.doubt, second.errs, second.doubt)
		}
		resume()
		time.Sleep(trip)
		answers(t, q)
		if sizes := d.sent(); !slices.Equal(sizes, []int{1, 1}) {
			t.Errorf("batches after callers had left: got sizes %v, want none of their calls", sizes)
		}
	})
}

// TestACallerThatLeavesBeforeItsCallIsWritten: the call is not written even if its batch
// is about to be.
func TestACallerThatLeavesBeforeItsCallIsWritten(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		resume := d.hold()
		ctx, cancel := context.WithCancel(t.Context())
		var a asked
		a.ask(ctx, q, 10, 0)
		synctest.Wait()
		cancel()
		a.wg.Wait()
		resume()
		time.Sleep(2 * trip)
		if a.errs[context.Canceled] != 10 || a.doubt > 0 {
			t.Errorf("callers that left: got %v and %d in doubt, want 10 canceled", a.errs, a.doubt)
		}
		for _, c := range a.calls {
			if c.state.Load() == written {
				t.Error("a call whose caller had left: got it written, want it not written")
			}
		}
	})
}

// TestSendingThatDoesNotReturn: each caller of the batch gets an error, and the queue goes
// on.
func TestSendingThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
				answers(t, q)
				d.set(func() { d.ends = ends })
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						if err := q.Do(withBudget(t.Context()), new(call)); !errors.Is(err, errGone) {
							t.Errorf("a caller in the batch: got %v, want %v", err, errGone)
						}
					})
				}
				all.Wait()
				d.set(func() { d.ends = nil })
				answers(t, q)
				if n := d.noted(Unanswered) + d.noted(Unsent); n > 0 || d.probed() > 0 {
					t.Errorf("afterwards: got %d missing answers noted and %d probes, want none: the server did nothing wrong", n, d.probed())
				}
			})
		})
	}
}

// TestAServerThatWasSlowIsAskedAgain: round trips of more than half of the budget must
// not keep the queue from learning that they have become shorter.
func TestAServerThatWasSlowIsAskedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		d.set(func() { d.slower = budget * 7 / 10 })
		for range 40 {
			answers(t, q)
		}
		d.set(func() { d.slower = 0 })
		var a asked
		for range 20 {
			a.ask(t.Context(), q, 50, 0)
			a.wg.Wait()
		}
		if a.errs[nil] < 500 {
			t.Errorf("after the server was slow: got %v, want most of 1000 answered", a.errs)
		}
	})
}

// TestASaturatedServerHasTwoBatches: it works on one while the process handles the other.
func TestASaturatedServerHasTwoBatches(t *testing.T) {
	t.Parallel()
	p := newPace(budget)
	const shortest = int64(50 * time.Microsecond)
	p.returned(0, shortest, 1, 1)
	for range 100 {
		p.returned(0, 100*shortest, 1, 1)
	}
	if got := p.batches(); got != 2 {
		t.Errorf("at a hundred times the shortest round trip: got %d batches, want 2", got)
	}
}
