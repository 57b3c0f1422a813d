package undo

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// TestRoom: there are as many searches as Room says, and those of Keep.
func TestRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := Undoer{Room: 2}
		var there atomic.Bool
		attempt := func() Result {
			if there.Load() {
				return Done
			}
			return Absent
		}
		for i := range 2 {
			if u.Full() || !u.Start(time.Now(), time.Minute, attempt) {
				t.Errorf("search %d: got no room, want it started", i)
			}
		}
		if !u.Full() || u.Start(time.Now(), time.Minute, attempt) {
			t.Error("a third search: got room, want none")
		}
		for range 3 {
			if !u.Keep(time.Now(), time.Minute, attempt) {
				t.Error("Keep: got false, want true")
			}
		}
		synctest.Wait()
		if got := u.Stats(); got != (Stats{Pending: 5, Overflowed: 1}) {
			t.Errorf("while all run: got stats %+v, want 5 pending and 1 overflowed", got)
		}
		there.Store(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := u.Stats(); got != (Stats{Undone: 5, Overflowed: 1}) || u.Full() {
			t.Errorf("after all were found: got stats %+v and full %v, want 5 undone, 1 overflowed, and false", got, u.Full())
		}
	})
}

// TestTelling: a caller is told once of each search that is given up, and of no other.
func TestTelling(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others int // that are looked for already, and leave no room
		result Result
		told   int64
	}{
		"found": {0, Done, 0}, "it lapses": {0, Refused, 1},
		"no room, found": {1, Done, 0}, "no room": {1, Refused, 1}, "not even for one attempt": {1 + spares, Done, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := Undoer{Room: 1}
				for range c.others {
					u.Start(time.Now(), time.Minute, func() Result {
						time.Sleep(time.Second)
						return Absent
					})
				}
				var told atomic.Int64
				u.Telling(false, func() { told.Add(1) })(time.Now(), time.Minute, func() Result { return c.result })
				time.Sleep(time.Hour)
				synctest.Wait()
				if got := told.Load(); got != c.told {
					t.Errorf("got told %d times, want %d", got, c.told)
				}
			})
		})
	}
}

// TestAGrantThatNeverLapsesIsLookedForWhileRedisRefuses: its operator is changing the
// password, for longer than any lease. A grant with a lease has lapsed by then.
func TestAGrantThatNeverLapsesIsLookedForWhileRedisRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u Undoer
		began := time.Now()
		attempt := func() Result {
			if time.Since(began) < time.Hour {
				return Refused
			}
			return Done
		}
		u.Keep(began, time.Minute, attempt)
		u.Start(began, time.Minute, attempt)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if got := u.Stats(); got != (Stats{Pending: 1, Lapsed: 1}) {
			t.Errorf("while Redis refuses: got stats %+v, want the one without a lease pending", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := u.Stats(); got != (Stats{Undone: 1, Lapsed: 1}) {
			t.Errorf("afterwards: got stats %+v, want it undone, and the other lapsed", got)
		}
	})
}

// TestARefusalIsNoReasonToHurry has a server refuse all attempts at once, and then come
// back.
func TestARefusalIsNoReasonToHurry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many, away = 5000, 20 * time.Second
		u := Undoer{Room: many}
		began := time.Now()
		var asked atomic.Int64
		for range many {
			u.Start(began, 30*time.Second, func() Result {
				asked.Add(1)
				if time.Since(began) < away {
					return Unanswered
				}
				return Done
			})
		}
		time.Sleep(away - time.Nanosecond)
		synctest.Wait()
		if n := asked.Load(); n > many+int64(away/time.Second)*1200+100 {
			t.Errorf("attempts at a server that refuses: got %d, want at most %d", n, many+int64(away/time.Second)*1200+100)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := u.Stats(); got != (Stats{Undone: many}) {
			t.Errorf("two seconds after the server is back: got stats %+v, want %d undone", got, many)
		}
	})
}

// TestASearchThatHasEndedIsLetGo: what its attempt refers to may be large.
func TestASearchThatHasEndedIsLetGo(t *testing.T) {
	t.Parallel()
	const many = 100
	var u Undoer
	var back atomic.Bool
	var kept atomic.Int64
	for range many {
		result := new([1 << 10]byte)
		kept.Add(1)
		runtime.AddCleanup(result, func(int) { kept.Add(-1) }, 0)
		u.Start(time.Now(), time.Minute, func() Result {
			if back.Load() {
				return Result(result[0]) + Done
			}
			return Unanswered
		})
	}
	back.Store(true)
	redistest.Await(t, time.Minute, "all to be let go", func() bool {
		runtime.GC()
		return u.Stats().Pending == 0 && kept.Load() == 0
	})
	runtime.KeepAlive(&u)
}

// TestMemoryOfASearch: a search takes less than a kilobyte, without what its attempt
// refers to. The race detector doubles it.
func TestMemoryOfASearch(t *testing.T) { //nolint:paralleltest // it measures the heap
	const many = Most / 10
	var u Undoer
	var over atomic.Bool
	defer over.Store(true)
	attempt := func() Result {
		if over.Load() {
			return Done
		}
		return Unanswered
	}
	before := redistest.HeapInUse()
	for range many {
		u.Start(time.Now(), time.Minute, attempt)
	}
	if got := u.Stats().Pending; got != many {
		t.Errorf("an Undoer without a Room: got %d searches, want room for %d", got, many)
	}
	if after := redistest.HeapInUse(); after > before+many*1000 {
		t.Errorf("a search: got %d bytes, want at most 1000", (after-before)/many)
	} else {
		t.Logf("%d bytes a search", (after-before)/many)
	}
	runtime.KeepAlive(&u)
}
