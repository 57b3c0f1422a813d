package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const (
	trip   = time.Millisecond
	budget = 50 * time.Millisecond
)

// double is a server that answers after a round trip, unless it is stopped.
type double struct {
	mu      sync.Mutex
	batches [][]*Entry // that were sent
	sizes   []int
	notes   map[Result]int
	probes  int
	holds   chan struct{} // while it is not nil, nothing is written until it is closed
	stopped chan struct{} // while it is not nil, answers wait until it is closed
	stops   bool          // from the beginning on
	slower  time.Duration // what answers take longer than a round trip
	result  Result
	panics  error  // of Send
	answer  Result // to a probe
}

func (d *double) Send(b *Batch) Result {
	d.mu.Lock()
	d.sizes = append(d.sizes, len(b.Entries))
	holds, stopped, result, slower, panics := d.holds, d.stopped, d.result, d.slower, d.panics
	d.mu.Unlock()
	if panics != nil {
		panic(panics)
	}
	if holds != nil {
		<-holds
	}
	for _, e := range b.Entries {
		if result != Unsent {
			e.Call.(*call).state.CompareAndSwap(unsent, written)
		}
	}
	if stopped != nil {
		<-stopped
	}
	time.Sleep(trip + slower)
	return result
}

func (d *double) Note(r Result, _ int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.notes == nil {
		d.notes = map[Result]int{}
	}
	d.notes[r]++
}

func (d *double) Probe(_ Call, more time.Duration) Result {
	d.mu.Lock()
	d.probes++
	stopped, answer, slower := d.stopped, d.answer, d.slower
	d.mu.Unlock()
	if stopped != nil {
		time.Sleep(budget)
		return Unanswered
	}
	time.Sleep(min(trip+slower, budget+more))
	if trip+slower > budget+more {
		return Unanswered
	}
	return answer
}

func (d *double) sent() (sizes []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append(sizes, d.sizes...)
}

func (d *double) noted(r Result) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.notes[r]
}

func (d *double) probed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.probes
}

func (d *double) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// asked is what became of some calls.
type asked struct {
	mu    sync.Mutex
	wg    sync.WaitGroup
	calls []*call
	errs  map[error]int // of calls that were not sent
	doubt int           // calls that may have run
	took  time.Duration // at most
}

// ask has n callers ask at once.
func (a *asked) ask(ctx context.Context, q *Queue, n, size int) {
	if a.errs == nil {
		a.errs = map[error]int{}
	}
	for range n {
		a.wg.Go(func() {
			c, began := &call{size: size}, time.Now()
			err := q.Do(until(ctx, budget), c)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.calls = append(a.calls, c)
			a.took = max(a.took, time.Since(began))
			if err != nil && c.state.Load() == written {
				a.doubt++
				return
			}
			a.errs[err]++
		})
	}
}

// inBubble runs a test on a queue of the server, in virtual time.
func inBubble(t *testing.T, d *double, run func(t *testing.T, d *double, q *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if d.stops {
			d.stopped = make(chan struct{}) // of the bubble
		}
		defer settle()
		run(t, d, New(d, budget))
	})
}

// settle lets what is in flight return: a bubble's time stands still once its test has ended.
func settle() { time.Sleep(time.Minute) }

// answers has a queue get its first answer.
func answers(t *testing.T, q *Queue) {
	t.Helper()
	if err := q.Do(until(t.Context(), budget), new(call)); err != nil {
		t.Fatalf("a first call: got %v, want no error", err)
	}
}

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
					t.Errorf("got batches of %v and %d answers, want %d calls at most in each and %d answers", d.sent(), a.errs[nil], c.most, c.calls)
				}
			})
		})
	}
}

// TestTooManyThatWaitAreRefused: what does not fit in is not sent.
func TestTooManyThatWaitAreRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, &double{stops: true}, func(t *testing.T, d *double, q *Queue) {
		var a asked
		a.ask(t.Context(), q, mostWaiting+300, 0)
		synctest.Wait()
		a.mu.Lock()
		full := a.errs[ErrFull]
		a.mu.Unlock()
		if full == 0 || full > 300 {
			t.Errorf("got %d calls refused, want up to 300 and one at least", full)
		}
		close(d.stopped)
		a.wg.Wait()
		if a.errs[nil]+a.errs[ErrFull]+a.errs[context.DeadlineExceeded] != mostWaiting+300 || a.doubt > 0 {
			t.Errorf("got %v and %d in doubt, want each call answered or refused", a.errs, a.doubt)
		}
	})
}

// TestAStalledServer stops answering under load. What is in doubt then is at most what was in flight, and
// no caller waits longer than its budget.
func TestAStalledServer(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		var a asked
		stop := make(chan struct{})
		flying := 0
		for i := range 400 { // one each millisecond
			if i == 100 {
				d.set(func() { d.stopped = stop })
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
		// The server stalls while calls leave, so that those of the time until it counts as late belong to it.
		if most := flying + 20*int(budget/2/time.Millisecond); doubt == 0 || doubt > most {
			t.Errorf("got %d calls in doubt, want one at least and %d at most", doubt, most)
		}
		if n := d.noted(Unanswered) + d.noted(Unsent); n < 20 {
			t.Errorf("the server was told of %d missing answers, want 20 at least", n)
		}
		sent := len(d.sent())
		a.ask(t.Context(), q, 100, 0)
		time.Sleep(2 * budget)
		if n := len(d.sent()); n != sent {
			t.Errorf("got %d batches sent to a silent server, want none", n-sent)
		}
		close(stop)
		d.set(func() { d.stopped = nil })
		time.Sleep(2 * budget)
		var after asked
		after.ask(t.Context(), q, 100, 0)
		after.wg.Wait()
		a.wg.Wait()
		if after.errs[nil] != 100 || a.doubt != doubt {
			t.Errorf("after the stall: got %v and %d more in doubt, want 100 answers and none", after.errs, a.doubt-doubt)
		}
		if a.took > budget {
			t.Errorf("the longest wait: got %v, want %v at most", a.took, budget)
		}
	})
}

// TestOneBatchUntilTheServerAnswers: a server that was not reached, or never yet, gets one batch at a time.
func TestOneBatchUntilTheServerAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, &double{result: Unsent}, func(t *testing.T, d *double, q *Queue) {
		var a asked
		for range 10 {
			a.ask(t.Context(), q, 10, 0)
			synctest.Wait()
			q.mu.Lock()
			if len(q.inFlight) > 1 {
				t.Errorf("got %d batches in flight, want one at most", len(q.inFlight))
			}
			q.mu.Unlock()
			time.Sleep(trip / 4)
		}
		a.wg.Wait()
		if n := len(d.sent()); n < 2 || n > 6 || a.doubt > 0 || d.probed() > 0 {
			t.Errorf("got %d batches, %d in doubt, %d probes, want 2 to 6 and none of the others", n, a.doubt, d.probed())
		}
	})
}

// TestALostAnswerIsFollowedByAProbe: nothing is sent before the probe is answered.
func TestALostAnswerIsFollowedByAProbe(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		d.set(func() { d.result = Unanswered })
		if err := q.Do(until(t.Context(), budget), new(call)); err != nil { // its own error is in the call
			t.Errorf("a call in a batch that ended: got %v, want no error", err)
		}
		d.set(func() { d.result, d.answer = Answered, Unanswered })
		sent := len(d.sent())
		var a asked
		a.ask(t.Context(), q, 5, 0)
		time.Sleep(budget / 2)
		if n := len(d.sent()); n != sent || d.probed() < 2 {
			t.Errorf("got %d batches and %d probes while these have no answer, want none and two at least", n-sent, d.probed())
		}
		d.set(func() { d.answer = Answered })
		a.wg.Wait()
		if a.errs[nil] != 5 {
			t.Errorf("after a probe was answered: got %v, want 5 answers", a.errs)
		}
	})
}

func TestACallerThatLeaves(t *testing.T) {
	t.Parallel()
	inBubble(t, &double{stops: true}, func(t *testing.T, d *double, q *Queue) {
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
			t.Errorf("got %d in doubt of those sent, and %v, %d in doubt of those that wait, want 1, 10 canceled and 0",
				first.doubt, second.errs, second.doubt)
		}
		close(d.stopped)
		d.set(func() { d.stopped = nil })
		time.Sleep(trip)
		answers(t, q)
		if sizes := d.sent(); !slices.Equal(sizes, []int{1, 1}) {
			t.Errorf("got batches of %v, want none of the calls whose callers had left", sizes)
		}
	})
}

// TestACallerThatLeavesBeforeItsCallIsWritten: the call is not written any more, though its batch is about to be.
func TestACallerThatLeavesBeforeItsCallIsWritten(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		holds := make(chan struct{})
		d.set(func() { d.holds = holds })
		ctx, cancel := context.WithCancel(t.Context())
		var a asked
		a.ask(ctx, q, 10, 0)
		synctest.Wait()
		cancel()
		a.wg.Wait()
		close(holds)
		d.set(func() { d.holds = nil })
		time.Sleep(2 * trip)
		if a.errs[context.Canceled] != 10 || a.doubt > 0 {
			t.Errorf("got %v and %d in doubt, want 10 canceled", a.errs, a.doubt)
		}
		for _, c := range a.calls {
			if c.state.Load() == written {
				t.Error("got a call that was written after its caller had left, want none")
			}
		}
	})
}

// TestABatchThatIsNotWrittenInTime is lost, and none of its calls may have run.
func TestABatchThatIsNotWrittenInTime(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		holds := make(chan struct{})
		d.set(func() { d.holds = holds })
		var a asked
		a.ask(t.Context(), q, 10, 0)
		a.wg.Wait()
		time.Sleep(budget)
		if a.errs[context.DeadlineExceeded] != 10 || d.noted(Unsent) == 0 || d.noted(Unanswered) > 0 {
			t.Errorf("got %v, and %d batches noted as unsent and %d as unanswered, want 10 expired calls, batches unsent and none unanswered",
				a.errs, d.noted(Unsent), d.noted(Unanswered))
		}
		close(holds)
	})
}

// TestNothingIsSentWhileAnAnswerIsLate: a call each tenth of a budget, to a server that stands still.
func TestNothingIsSentWhileAnAnswerIsLate(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		stop := make(chan struct{})
		d.set(func() { d.stopped = stop })
		var a asked
		for range 9 {
			a.ask(t.Context(), q, 1, 0)
			time.Sleep(budget / 10)
		}
		if n := len(d.sent()) - 1; n != 6 { // until half a budget after the first
			t.Errorf("got %d batches, want the 6 that left before the first was late", n)
		}
		close(stop)
		a.wg.Wait()
	})
}

// TestAPanicIsItsCallers: each caller of the batch panics, and the queue goes on.
func TestAPanicIsItsCallers(t *testing.T) {
	t.Parallel()
	inBubble(t, new(double), func(t *testing.T, d *double, q *Queue) {
		answers(t, q)
		boom := errors.New("boom")
		d.set(func() { d.panics = boom })
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				defer func() {
					if err, _ := recover().(error); !errors.Is(err, boom) {
						t.Errorf("got the panic %v, want that of the server", err)
					}
				}()
				err := q.Do(until(t.Context(), budget), new(call))
				t.Errorf("got %v and no panic, want a panic", err)
			})
		}
		all.Wait()
		d.set(func() { d.panics = nil })
		answers(t, q)
		if n := d.noted(Unanswered) + d.noted(Unsent); n > 0 || d.probed() > 0 {
			t.Errorf("got %d missing answers noted and %d probes, want none: the server did nothing wrong", n, d.probed())
		}
	})
}

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

// TestALateSweepLooksAgain: if a timer is late, the process had no CPU, and the answer may be there.
func TestALateSweepLooksAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, &double{stops: true}, func(t *testing.T, d *double, q *Queue) {
		result := make(chan error, 1)
		c := new(call)
		go func() { result <- q.Do(until(t.Context(), budget), c) }()
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
		close(d.stopped)
		if err := <-result; err != nil {
			t.Errorf("an answer after a late sweep: got %v, want no error", err)
		}
	})
}

// TestAProcessWithoutCPU has goroutines that compute. Goroutines wait for their turn, so answers are read late. They count,
// also after one that was lost. Without an answer, the wait ends.
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
				stopped := make(chan struct{})
				d.set(func() { d.stopped = stopped })
				a.took = 0
				a.ask(t.Context(), q, 20, 0)
				a.wg.Wait()
				if most := budget + 3*turn + time.Duration(unpolled) + 3*turn; a.took < budget || a.took > most {
					t.Errorf("a turn of %v without an answer: got an end after %v, want it within %v", turn, a.took, most)
				}
				close(stopped)
			})
		}
	}
}

// TestAProcessThatHasCPUAgain waits no longer than the budget.
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
		if q.turn.slack() == 0 {
			t.Error("got no slack while turns take 80ms, want some")
		}
		turn.Store(0)
		d.set(func() { d.slower = 0 })
		time.Sleep(3 * time.Duration(turnSpan))
		answers(t, q)
		stopped := make(chan struct{})
		d.set(func() { d.stopped = stopped })
		a.took = 0
		a.ask(t.Context(), q, 20, 0)
		a.wg.Wait()
		if a.took != budget {
			t.Errorf("without an answer: got an end after %v, want %v", a.took, budget)
		}
		close(stopped)
	})
}

// TestAServerThatWasSlowIsAskedAgain: round trips of more than half the budget must not keep
// the queue from learning that they have become shorter.
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
			t.Errorf("got %v, want most of 1000 answered", a.errs)
		}
	})
}
