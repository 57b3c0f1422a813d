package queue

import (
	"context"
	"errors"
	"testing"
	"time"
)

// short has a caller ask with so much time of its own.
func short(t *testing.T, q *Queue, d time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	deadline, _ := ctx.Deadline()
	return q.Do(within{ctx, deadline}, &call{due: time.Now().Add(budget)})
}

// TestAShortCallSaysNothingAboutTheServer, which answers all of them within the budget, but
// after their callers have left.
func TestAShortCallSaysNothingAboutTheServer(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		d.set(func() { d.slower = budget - 2*trip })
		for range 100 {
			if err := short(t, q, budget/10); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a short call: got %v, want the end of its context", err)
			}
		}
		time.Sleep(budget)
		if n := d.noted(Unanswered) + d.noted(Unsent); n > 0 || d.noted(Answered) < 2 || d.probed() > 0 {
			t.Errorf("got %d failures and %d answers noted, and %d probes, want answers alone", n, d.noted(Answered), d.probed())
		}
	})
}

// TestASilentServerIsFoundByShortCalls: what is noted is the batch without an answer, and
// then each probe, and not the calls that wait for a probe.
func TestASilentServerIsFoundByShortCalls(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		resume := d.stop()
		for began := time.Now(); time.Since(began) < 20*budget; {
			if err := short(t, q, budget/10); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a short call: got %v, want the end of its context", err)
			}
		}
		probes := d.probed()
		if n := d.noted(Unsent); probes < 15 || n < probes-1 || n > probes || d.noted(Unanswered) > 8 {
			t.Errorf("without an answer for 20 budgets: got %d and %d failures noted after %d probes, want one for each probe and for each batch before",
				n, d.noted(Unanswered), probes)
		}
		resume()
		if err := short(t, q, budget/2); err == nil {
			return
		}
		time.Sleep(budget)
		if err := short(t, q, budget/2); err != nil {
			t.Errorf("after the server is back: got %v, want an answer", err)
		}
	})
}
