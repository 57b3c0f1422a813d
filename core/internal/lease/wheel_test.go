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

func (r *renewer) Renew(_ string, all []*Member) []Result {
	r.mu.Lock()
	var one []int
	results := make([]Result, 0, len(all))
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
	for _, of := range one {
		result := Renewed
		if answer != nil {
			result = answer(of)
		}
		results = append(results, result)
	}
	return results
}

func (r *renewer) takeCalls() [][]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls, r.at = nil, nil
	return calls
}

// fill adds n leases of a key that begin now.
func fill(w *Wheel, by Renewer, key string, n int) []*Member {
	var all []*Member
	now := time.Now()
	for i := range n {
		m := &Member{Of: i}
		w.Add(m, by, key, ttl, now.Add(ttl/Renewals), now.Add(ttl))
		all = append(all, m)
	}
	return all
}

func newTestWheel() (*Wheel, *renewer) {
	return NewWheel(func(key string) string { return key[:1] }), &renewer{began: time.Now()}
}

// TestLeasesOfOneKeyAreRenewedTogether: 64 a call, three times in a lease, however they
// began.
func TestLeasesOfOneKeyAreRenewedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, r := newTestWheel()
		all := fill(w, r, "a", 10*Together)
		time.Sleep(ttl)
		calls := r.takeCalls()
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
		for i := range all {
			if n := renewed[i]; n < 2 || n > 4 {
				t.Errorf("lease %d: got %d renewals in its length, want 2 to 4", i, n)
			}
		}
		for _, m := range all {
			w.Remove(m)
		}
		r.takeCalls()
		time.Sleep(time.Hour)
		if calls := r.takeCalls(); len(calls) > 0 || len(w.groups) > 0 {
			t.Errorf("after all were removed: got %d calls and %d groups, want none", len(calls), len(w.groups))
		}
	})
}

// TestRenewalsSpreadOut: leases that began together, each with a key of its own, are not
// renewed in one moment for ever.
func TestRenewalsSpreadOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, r := newTestWheel()
		var all []*Member
		for i := range 1000 {
			m := &Member{Of: i, Alone: true}
			w.Add(m, r, "a", ttl, time.Now().Add(ttl/Renewals), time.Now().Add(ttl))
			all = append(all, m)
		}
		time.Sleep(2 * ttl)
		r.takeCalls()
		time.Sleep(ttl / Renewals)
		at := map[time.Duration]int{}
		r.mu.Lock()
		for _, when := range r.at {
			at[when.Truncate(ttl/100)]++
		}
		r.mu.Unlock()
		for when, n := range at {
			if n > 200 {
				t.Errorf("at %v: got %d of 1000 renewals within a hundredth of a lease, want them spread", when, n)
			}
		}
		for _, m := range all {
			w.Remove(m)
		}
	})
}

// TestAfterAStallThoseThatEndFirstAreRenewedFirst, and no more than so many at once.
func TestAfterAStallThoseThatEndFirstAreRenewedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, r := newTestWheel()
		w.exact, r.took = true, 50*time.Millisecond
		now := time.Now()
		var all []*Member
		for i := range 1000 { // the later they are added, the sooner they end
			m := &Member{Of: i, Alone: true}
			w.Add(m, r, "a", ttl, now.Add(time.Second), now.Add(ttl-time.Duration(i)*time.Millisecond))
			all = append(all, m)
		}
		time.Sleep(1900 * time.Millisecond)
		r.mu.Lock()
		var order []int
		for _, call := range r.calls {
			order = append(order, call...)
		}
		most := r.most
		r.mu.Unlock()
		if most != atOnce {
			t.Errorf("calls at once: got %d, want %d", most, atOnce)
		}
		for i, of := range order[:900] {
			if of > 1000-i+2*atOnce || of < 1000-i-2*atOnce {
				t.Fatalf("renewal %d: got lease %d, want those that end first", i, of)
			}
		}
		for _, m := range all {
			w.Remove(m)
		}
	})
}

// TestAServerThatDoesNotAnswerDelaysNoOther.
func TestAServerThatDoesNotAnswerDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, alive := newTestWheel()
		dead := &renewer{began: time.Now(), took: time.Second, answer: func(int) Result { return Failed }}
		var all []*Member
		for i := range 2000 {
			one, two := &Member{Of: i, Alone: true}, &Member{Of: i, Alone: true}
			w.Add(one, dead, "dead", ttl, time.Now().Add(ttl/Renewals), time.Now().Add(ttl))
			w.Add(two, alive, "alive", ttl, time.Now().Add(ttl/Renewals), time.Now().Add(ttl))
			all = append(all, one, two)
		}
		time.Sleep(ttl / 2)
		if n := len(alive.takeCalls()); n != 2000 {
			t.Errorf("renewals on the other server: got %d, want each of 2000", n)
		}
		for _, m := range all {
			w.Remove(m)
		}
		time.Sleep(time.Minute)
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
			synctest.Test(t, func(t *testing.T) {
				w, r := newTestWheel()
				r.answer = c.answer
				all := fill(w, r, "a", 3)
				time.Sleep(ttl)
				calls := r.takeCalls()
				if again := len(calls) > 1; again != c.renewed || !slices.Equal(slices.Sorted(slices.Values(calls[0])), []int{0, 1, 2}) {
					t.Errorf("got the calls %v, want another call: %t", calls, c.renewed)
				}
				for _, m := range all {
					w.Remove(m)
				}
			})
		})
	}
}

// TestLapsesAreToldOnTime, also while no renewal returns.
func TestLapsesAreToldOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, r := newTestWheel()
		r.took = time.Hour
		began := time.Now()
		told := make(chan time.Duration, 1000)
		for i := range 1000 {
			m := &Member{Of: i, Alone: true}
			m.Lapse = func() time.Time {
				told <- time.Since(began)
				return time.Time{}
			}
			w.Add(m, r, "a", ttl, began.Add(ttl/Renewals), began.Add(ttl))
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
		time.Sleep(3 * time.Hour)
	})
}
