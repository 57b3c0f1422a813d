package limit_test

import "time"

// cut has the processes lose Redis.
func (w *walk) cut() {
	if w.away || w.rng.IntN(3) > 0 {
		return
	}
	w.note("without Redis")
	for _, one := range w.ones {
		one.rdb.Cut("refused")
	}
	w.away = true
}

// mend ends the outage.
func (w *walk) mend() {
	if w.away && w.rng.IntN(3) == 0 {
		w.comeBack()
	}
}

// comeBack ends the outage, and waits until Redis decides again.
func (w *walk) comeBack() {
	w.Helper()
	w.note("Redis is back")
	for i, one := range w.ones {
		one.rdb.Mend()
		for n := 0; ; n++ {
			d, err := w.limiters[i].Peek(w.Context(), "other")
			if err == nil && !d.Degraded {
				break
			}
			if n == 100 {
				w.fail("ten seconds after an outage: got %+v, %v, want Redis to decide", d, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	w.away = false
}

// scale tells a process, or all that share its state, how many there are.
func (w *walk) scale() {
	w.Helper()
	by, n := w.rng.IntN(len(w.limiters)), 1+w.rng.IntN(30)
	w.note("%d is one of %d", by, n)
	if err := w.limiters[by].SetInstances(n); err != nil {
		w.fail("SetInstances: got %v, want no error", err)
	}
	switch {
	case w.ones != nil:
		w.ones[by].own.one = int64(n)
	case w.driver.down:
		w.model.one = int64(n)
	}
}
