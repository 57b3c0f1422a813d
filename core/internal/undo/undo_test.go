package undo

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// few is a Room that a test can fill.
const few = 1000

// diary makes each attempt answer what its place in answers says, the last answer for all
// that follow. It notes when each attempt was made.
type diary struct {
	began   time.Time
	answers []Result
	took    time.Duration
	at      []time.Duration
}

func (d *diary) attempt() Result {
	d.at = append(d.at, time.Since(d.began))
	time.Sleep(d.took)
	return d.answers[min(len(d.at), len(d.answers))-1]
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	const ms, s = time.Millisecond, time.Second
	start := slices.Clip([]time.Duration{0, 100 * ms, 300 * ms, s})
	for name, c := range map[string]struct {
		since   time.Duration // it was asked
		lease   time.Duration
		took    time.Duration
		answers []Result
		want    []time.Duration
		undone  uint64
	}{
		"there at once":    {0, 30 * s, 0, []Result{Done}, start[:1], 1},
		"there in the end": {0, 30 * s, 0, []Result{Absent, Unanswered, Absent, Absent, Absent, Done}, append(start, 2*s, 3*s), 1},
		"again and again":  {0, 30 * s, 0, []Result{Found, Absent, Found, Done}, start, 3},
		"found once":       {0, 3 * s, 0, []Result{Found, Absent}, append(start, 2*s, 3*s), 1},
		"never there":      {0, 3 * s, 0, []Result{Absent}, append(start, 2*s, 3*s), 0},
		"asked long ago":   {2500 * ms, 3 * s, 0, []Result{Absent}, start, 0},
		"a short lease":    {0, 50 * ms, 0, []Result{Absent}, start[:2], 0},
		"lapsed already":   {4 * s, 3 * s, 0, []Result{Absent}, start[:1], 0},
		"no answer for longer than a lease": {
			0, 2 * s, 0, append(slices.Repeat([]Result{Unanswered}, 6), Absent), append(start, 2*s, 3*s, 4*s, 5*s), 0,
		},
		"found after a silence": {
			0, 1500 * ms, 0, append(slices.Repeat([]Result{Unanswered}, 4), Absent, Done), append(start, 2*s, 3*s), 1,
		},
		"slow attempts": {0, 2 * s, 250 * ms, []Result{Absent}, []time.Duration{0, 250 * ms, 500 * ms, 1200 * ms, 2200 * ms}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var u Undoer
				d := &diary{began: time.Now(), answers: c.answers, took: c.took}
				if !u.Start(d.began.Add(-c.since), c.lease, d.attempt) || u.Stats().Pending != 1 {
					t.Fatalf("Start: got stats %+v, want 1 pending", u.Stats())
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				want := Stats{Undone: c.undone}
				if c.answers[len(c.answers)-1] != Done {
					want.Lapsed = 1
				}
				if !slices.Equal(d.at, c.want) || u.Stats() != want {
					t.Errorf("the attempts: got them at %v, want %v; got stats %+v, want %+v", d.at, c.want, u.Stats(), want)
				}
			})
		})
	}
}

func TestSparser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u Undoer
		d := &diary{began: time.Now(), answers: append(slices.Repeat([]Result{Unanswered}, 3), Absent)}
		u.Start(d.began, time.Hour, d.attempt)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := len(d.at); n < 30 || n > 50 || u.Stats().Pending != 0 {
			t.Errorf("for a grant of an hour: got %d attempts, %+v, want about 40 and none pending", n, u.Stats())
		}
		for i, at := range d.at[1:] {
			if pause := at - d.at[i]; pause > time.Second && pause > at/4 {
				t.Errorf("an attempt: got it at %v, %v after the last, want within 1s or a quarter of the time", at, pause)
			}
		}
	})
}

// TestAbreast: Redis takes a second for an answer.
func TestAbreast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u Undoer
		var running, most atomic.Int64
		for range 100 {
			asked := 0
			u.Start(time.Now(), time.Minute, func() Result {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				time.Sleep(time.Second)
				if asked++; asked == 3 {
					return Done
				}
				return Absent
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most.Load() != parallel || u.Stats() != (Stats{Undone: 100}) {
			t.Errorf("attempts at once: got %d, want %d; got stats %+v, want 100 undone",
				most.Load(), parallel, u.Stats())
		}
	})
}

// TestQueued has a server stand still while the most searches run. The server executes
// what it was asked only after it has said that there is nothing.
func TestQueued(t *testing.T) {
	t.Parallel()
	const stopped = 30 * time.Second
	for _, lease := range []time.Duration{3 * time.Second, 30 * time.Second} {
		t.Run(lease.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := Undoer{Room: few}
				back := time.Now().Add(stopped)
				var last atomic.Int64
				for range few {
					u.Start(time.Now(), lease, func() Result {
						if time.Now().Before(back) {
							time.Sleep(250 * time.Millisecond)
							return Unanswered
						}
						time.Sleep(time.Millisecond)
						if time.Since(back) < time.Second {
							return Absent
						}
						last.Store(max(last.Load(), int64(time.Since(back))))
						return Done
					})
				}
				time.Sleep(2 * stopped)
				synctest.Wait()
				if took := time.Duration(last.Load()); u.Stats() != (Stats{Undone: few}) || took > 2*time.Second {
					t.Errorf("after the stall: got stats %+v, the last found %v after the server was back, want %d undone within 2s",
						u.Stats(), took, few)
				}
			})
		})
	}
}

// TestANodeThatIsGone: most searches are for a node that does not answer.
func TestANodeThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var u Undoer
		for range 900 {
			gone := time.Now().Add(time.Minute)
			u.Start(time.Now(), 30*time.Second, func() Result {
				if time.Now().After(gone) {
					return Done
				}
				time.Sleep(250 * time.Millisecond)
				return Unanswered
			})
		}
		time.Sleep(20*time.Second + 100*time.Millisecond)
		began, took := time.Now(), time.Hour
		u.Start(began, 5*time.Second, func() Result { took = time.Since(began); return Done })
		time.Sleep(time.Hour)
		synctest.Wait()
		if took > 0 || u.Stats() != (Stats{Undone: 901}) {
			t.Errorf("the node that answers: got its first attempt after %v, want it at once; got stats %+v, want 901 undone",
				took, u.Stats())
		}
	})
}

func TestOverflow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := Undoer{Room: few}
		asked := time.Now()
		for range few {
			if !u.Start(asked, time.Second, func() Result { return Absent }) {
				t.Fatal("Start: got false, want true")
			}
		}
		for _, result := range []Result{Absent, Unanswered, Done, Found} {
			times := 0
			if u.Start(asked, time.Second, func() Result { times++; return result }) {
				t.Error("one too many: got it started, want it refused")
			}
			synctest.Wait()
			if times != 1 {
				t.Errorf("one too many: got %d attempts, want 1", times)
			}
		}
		if got := u.Stats(); got != (Stats{Pending: few, Undone: 2, Overflowed: 2}) {
			t.Errorf("while the room is full: got stats %+v, want %d pending, 2 undone and 2 overflowed", got, few)
		}
		time.Sleep(2 * time.Second)
		if !u.Start(time.Now(), time.Second, func() Result { return Done }) {
			t.Error("Start with nothing pending: got false, want true")
		}
		synctest.Wait()
		if got := u.Stats(); got != (Stats{Undone: 3, Overflowed: 2, Lapsed: few}) {
			t.Errorf("after Start with nothing pending: got stats %+v, want 3 undone, 2 overflowed and the rest lapsed", got)
		}
	})
}

// TestOverflowIsBounded: no attempt gets an answer.
func TestOverflowIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := Undoer{Room: few}
		var asked atomic.Int64
		answer := make(chan struct{})
		for range 2*few + spares {
			u.Start(time.Now(), time.Second, func() Result { asked.Add(1); <-answer; return Done })
		}
		if got := u.Stats(); got != (Stats{Pending: few, Overflowed: few}) {
			t.Errorf("beyond the room: got stats %+v, want %d pending and %d overflowed", got, few, few)
		}
		close(answer)
		synctest.Wait()
		if got := u.Stats(); asked.Load() != few+spares || got != (Stats{Undone: few + spares, Overflowed: few}) {
			t.Errorf("at the end: got %d attempts and stats %+v, want %d undone and %d overflowed",
				asked.Load(), got, few+spares, few)
		}
	})
}
