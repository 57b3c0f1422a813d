package lease

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestCallsOfManyLeasesAreFewer: what is on its way to a server is bounded by leases too,
// because Redis works for as long on a call of 64 leases as on some ten decisions.
func TestCallsOfManyLeasesAreFewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, r := newTestWheel()
		r.took = 10 * time.Millisecond
		var all []*Member
		for i := range 40 {
			all = append(all, fill(w, r, "a"+string(rune('0'+i)), Together)...)
		}
		time.Sleep(ttl)
		r.mu.Lock()
		calls, most := len(r.calls), r.most
		r.mu.Unlock()
		if most != full/Together || calls < 2*40 {
			t.Errorf("got %d calls at once, of %d, want %d, of 80 at least", most, calls, full/Together)
		}
		for _, m := range all {
			w.Remove(m)
		}
	})
}
