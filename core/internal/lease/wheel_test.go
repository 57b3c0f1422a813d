package lease

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// renewer notes which leases are renewed together, and when.
type renewer struct {
	mu     sync.Mutex
	calls  [][]int // what the leases are for
	at     []time.Duration
	began  time.Time
	flying int
	most   int // calls that were on their way at once
	took   time.Duration
	answer func(of int) Result
}

func (r *renewer) Renew(_ string, all []*Member) {
	r.mu.Lock()
	var one []int
	answer := r.answer
	for _, m := range all {
		one = append(one, m.Of.(int))
	}
	r.calls, r.at = append(r.calls, one), append(r.at, time.Since(r.began))
	r.flying++
	r.most = max(r.most, r.flying)
	took := r.took
	r.mu.Unlock()
	time.Sleep(took)
	r.mu.Lock()
	r.flying--
	r.mu.Unlock()
	for _, m := range all {
		m.Result = Renewed
		if answer != nil {
			m.Result = answer(m.Of.(int))
		}
	}
}

func (r *renewer) takeCalls() [][]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls, r.at = nil, nil
	return calls
}

// times returns when there were calls since takeCalls.
func (r *renewer) times() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.at)
}

// atOnce returns how many calls were on their way at once.
func (r *renewer) atOnce() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

// testWheel is a wheel with the leases that a test has put into it. The first letter of a
// key is its server.
type testWheel struct {
	*Wheel

	renewer *renewer
	all     []*Member
}

// inWheel runs a test in a bubble. Then it takes all leases out of the wheel.
func inWheel(t *testing.T, test func(t *testing.T, w *testWheel)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &testWheel{
			Wheel:   NewWheel(func(key string) string { return key[:1] }),
			renewer: &renewer{began: time.Now()},
		}
		test(t, w)
		w.removeAll()
		time.Sleep(time.Hour) // for the calls that are on their way
	})
}

func (w *testWheel) removeAll() {
	for _, m := range w.all {
		w.Remove(m)
	}
}

// add adds a lease that is due at a third of its length, and ends so much before that.
func (w *testWheel) add(m *Member, by Renewer, key string, sooner time.Duration) {
	now := time.Now()
	w.Add(m, by, key, ttl, now.Add(ttl/Renewals), now.Add(ttl-sooner))
	w.all = append(w.all, m)
}

// fill adds n leases of one key, which are renewed together.
func (w *testWheel) fill(key string, n int) {
	for i := range n {
		w.add(&Member{Of: i}, w.renewer, key, 0)
	}
}

// fillAlone adds n leases that have a key each, all on the server of key. Each ends step
// before the one that was added before it.
func (w *testWheel) fillAlone(by Renewer, key string, n int, step time.Duration) {
	for i := range n {
		w.add(&Member{Of: i, Alone: true}, by, key, time.Duration(i)*step)
	}
}

// TestLeasesOfOneKeyAreRenewedTogether: 64 a call, three times in a lease, however they
// began.
func TestLeasesOfOneKeyAreRenewedTogether(t *testing.T) {
	t.Parallel()
	inWheel(t, func(t *testing.T, w *testWheel) {
		w.fill("a", 10*Together)
		time.Sleep(ttl)
		calls := w.renewer.takeCalls()
		renewed := map[int]int{}
		for _, call := range calls {
			if len(call) > Together {
				t.Errorf("got %d leases in one call, want %d at most", len(call), Together)
			}
			for _, of := range call {
				renewed[of]++
			}
		}
		if len(calls) < 2*10 || len(calls) > 4*10 {
			t.Errorf("got %d calls in the time of a lease, want about 30", len(calls))
		}
		for i := range w.all {
			if n := renewed[i]; n < 2 || n > 4 {
				t.Errorf("lease %d: got %d renewals in its length, want 2 to 4", i, n)
			}
		}
		w.removeAll()
		w.renewer.takeCalls()
		time.Sleep(time.Hour)
		if calls := w.renewer.takeCalls(); len(calls) > 0 || len(w.groups) > 0 {
			t.Errorf("after all were removed: got %d calls and %d groups, want none", len(calls), len(w.groups))
		}
	})
}

// TestLeasesStayTogether, although others of their call are over, or were removed while
// the call was on its way and new ones came.
func TestLeasesStayTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left   int
		answer func(w *testWheel, of int) Result
	}{
		"every other is over": {Together / 2, func(_ *testWheel, of int) Result {
			if of%2 == 0 {
				return Over
			}
			return Renewed
		}},
		"every other was removed": {Together, func(w *testWheel, of int) Result {
			if of%2 == 0 {
				w.add(&Member{Of: of + 1}, w.renewer, "a", 0)
				w.Remove(w.all[of])
			}
			return Renewed
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWheel(t, func(t *testing.T, w *testWheel) {
				w.exact = true
				var mu sync.Mutex // guards w.all
				w.renewer.answer = func(of int) Result {
					mu.Lock()
					defer mu.Unlock()
					return c.answer(w, of)
				}
				mu.Lock()
				w.fill("a", Together)
				mu.Unlock()
				time.Sleep(ttl)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				w.mu.Lock()
				defer w.mu.Unlock()
				calls := w.renewer.takeCalls()
				if len(calls) < 2 || len(w.groups) != 1 {
					t.Fatalf("got %d calls and %d groups, want some and 1", len(calls), len(w.groups))
				}
				for i, call := range calls[1:] {
					if len(call) != c.left {
						t.Errorf("call %d of %d: got %d leases renewed, want %d", i+2, len(calls), len(call), c.left)
					}
				}
			})
		})
	}
}

// TestWhatLeavesIsNotKept: if leases are to be removed soon, there are fewer with each that
// is added, and none after the timer has gone off.
func TestWhatLeavesIsNotKept(t *testing.T) {
	t.Parallel()
	inWheel(t, func(t *testing.T, w *testWheel) {
		w.renewer.answer = func(int) Result { return Over }
		const n = 10 * Together
		w.fill("a", n)
		for _, m := range w.all {
			w.RemoveSoon(m)
		}
		for range 5 {
			m := &Member{Of: n}
			w.add(m, w.renewer, "a", 0)
			w.RemoveSoon(m)
		}
		w.mu.Lock()
		left := len(w.groups[name{w.renewer, "a"}].members.all)
		w.mu.Unlock()
		if left != n+5-5*Together {
			t.Errorf("after %d were to be removed soon and 5 were added: got %d left, want %d", n, left, n+5-5*Together)
		}
		time.Sleep(ttl / Renewals)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.leaving) > 0 || len(w.groups) > 0 || !w.set.IsZero() {
			t.Errorf("after the timer has gone off: got %d leases to be removed, %d groups, and the timer at %v, want none", len(w.leaving), len(w.groups), w.set)
		}
	})
}

// TestRenewalsSpreadOut: leases that began together, each with a key of its own, are not
// renewed in one moment for ever.
func TestRenewalsSpreadOut(t *testing.T) {
	t.Parallel()
	inWheel(t, func(t *testing.T, w *testWheel) {
		w.fillAlone(w.renewer, "a", 1000, 0)
		time.Sleep(2 * ttl)
		w.renewer.takeCalls()
		time.Sleep(ttl / Renewals)
		at := map[time.Duration]int{}
		for _, when := range w.renewer.times() {
			at[when.Truncate(ttl/100)]++
		}
		if len(at) < 3 {
			t.Errorf("got renewals within %d hundredths of a lease, want them spread", len(at))
		}
		for when, n := range at {
			if n > 300 { // the densest has some 170
				t.Errorf("at %v: got %d of 1000 renewals within a hundredth of a lease, want them spread", when, n)
			}
		}
	})
}

// TestAfterAStallThoseThatEndFirstAreRenewedFirst, and no more than so many at once.
func TestAfterAStallThoseThatEndFirstAreRenewedFirst(t *testing.T) {
	t.Parallel()
	inWheel(t, func(t *testing.T, w *testWheel) {
		w.exact, w.renewer.took = true, 50*time.Millisecond
		w.fillAlone(w.renewer, "a", 1000, time.Millisecond)
		time.Sleep(1900 * time.Millisecond)
		if most := w.renewer.atOnce(); most != atOnce {
			t.Errorf("calls at once: got %d, want %d", most, atOnce)
		}
		order := slices.Concat(w.renewer.takeCalls()...)
		for i, of := range order[:900] {
			if of > 1000-i+2*atOnce || of < 1000-i-2*atOnce {
				t.Fatalf("renewal %d: got lease %d, want those that end first", i, of)
			}
		}
	})
}

// TestCallsOfManyLeasesAreFewer: what is on its way to a server is bounded by leases too,
// because Redis works for as long on a call of 64 leases as on some ten decisions.
func TestCallsOfManyLeasesAreFewer(t *testing.T) {
	t.Parallel()
	inWheel(t, func(t *testing.T, w *testWheel) {
		w.renewer.took = 10 * time.Millisecond
		for i := range 40 {
			w.fill("a"+string(rune('0'+i)), Together)
		}
		time.Sleep(ttl)
		most, calls := w.renewer.atOnce(), len(w.renewer.takeCalls())
		if most != full/Together || calls < 2*40 {
			t.Errorf("got %d calls at once, of %d, want %d, of 80 at least", most, calls, full/Together)
		}
	})
}

// TestAServerThatDoesNotAnswerDelaysNoOther.
func TestAServerThatDoesNotAnswerDelaysNoOther(t *testing.T) {
	t.Parallel()
	inWheel(t, func(t *testing.T, w *testWheel) {
		dead := &renewer{began: time.Now(), took: time.Second, answer: func(int) Result { return Failed }}
		w.fillAlone(dead, "dead", 2000, 0)
		w.fillAlone(w.renewer, "alive", 2000, 0)
		time.Sleep(ttl / 2)
		if n := len(w.renewer.takeCalls()); n != 2000 {
			t.Errorf("renewals on the other server: got %d, want each of 2000", n)
		}
	})
}

// TestRenewalsThatFailAreTriedAgain, those that are over are not, and a renewer that does
// not return has failed.
func TestRenewalsThatFailAreTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer  func(int) Result
		renewed bool // again within the lease
	}{
		"failed": {func(int) Result { return Failed }, true},
		"over":   {func(int) Result { return Over }, false},
		"panics": {func(int) Result { panic(errors.New("boom")) }, true},
		"exits":  {func(int) Result { runtime.Goexit(); return Over }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWheel(t, func(t *testing.T, w *testWheel) {
				w.renewer.answer = c.answer
				w.fill("a", 3)
				time.Sleep(ttl)
				calls := w.renewer.takeCalls()
				if again := len(calls) > 1; again != c.renewed || !slices.Equal(slices.Sorted(slices.Values(calls[0])), []int{0, 1, 2}) {
					t.Errorf("got the calls %v, want another call: %t", calls, c.renewed)
				}
			})
		})
	}
}

// TestLapsesAreToldOnTime, also while no renewal returns.
func TestLapsesAreToldOnTime(t *testing.T) {
	t.Parallel()
	inWheel(t, func(t *testing.T, w *testWheel) {
		w.renewer.took = time.Hour
		began := time.Now()
		told := make(chan time.Duration, 1000)
		for i := range 1000 {
			w.add(&Member{Of: i, Alone: true, Lapse: func() time.Time {
				told <- time.Since(began)
				return time.Time{}
			}}, w.renewer, "a", 0)
		}
		time.Sleep(ttl)
		synctest.Wait()
		if len(told) != 1000 {
			t.Errorf("holders that were told: got %d, want 1000", len(told))
		}
		for range len(told) {
			if at := <-told; at != ttl {
				t.Fatalf("a holder was told after %v, want %v", at, ttl)
			}
		}
	})
}
