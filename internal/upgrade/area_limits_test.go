//go:build neap_upgrade

package upgrade

import (
	"math/rand/v2"
	"sync"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

// takes is the area of limits: both versions use up limits of 100 of each kind.
type takes struct {
	faults

	limits []*limited
}

// limited is one subject of one limit. granted is what was granted and not given back;
// unknown is what calls without an answer may have changed.
type limited struct {
	call wire.Call

	mu               sync.Mutex
	granted, unknown int64
	by               map[string]int64
}

const limitOfAll = 100

func newTakes(*fleet) *takes {
	t := &takes{}
	for _, s := range sets {
		for _, subject := range []string{"ann", "bob with a space"} {
			t.limits = append(t.limits, &limited{
				call: wire.Call{Conf: wire.Conf{Name: "load", Policies: s.policies, Secret: s.secret}, Key: s.name + subject},
				by:   map[string]int64{},
			})
		}
	}
	return t
}

func (t *takes) name() string { return "limits" }

func (t *takes) session(f *fleet, r *rand.Rand) {
	p := f.pick(r)
	defer p.sessions.Done()
	t.take(t.limits[r.IntN(len(t.limits))], p, 1+r.Int64N(2), r.IntN(8) == 0)
}

// take takes permits, and gives them back if refund says so. It returns whether they
// were granted.
func (t *takes) take(l *limited, p *process, n int64, refund bool) bool {
	c := l.call
	c.N, c.As = n, unique()
	a, answered := t.do(p, "limit.take", c)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !answered:
		l.unknown += n
		return false
	case !a.OK:
		return false
	}
	l.granted += n
	l.by[p.version] += n
	if l.granted > limitOfAll {
		t.addf("%s: %d permits are granted at once, want %d at most", l.call.Key, l.granted, limitOfAll)
	}
	if !refund {
		return true
	}
	l.granted -= n // before another can be granted it
	l.mu.Unlock()
	a, answered = t.do(p, "limit.refund", of(c))
	l.mu.Lock()
	switch {
	case !answered:
		l.unknown += n
	case a.Word != "":
		t.addf("%s: a refund by the %s: got the error %q, want none", l.call.Key, p.version, a.Text)
	}
	return true
}

func (t *takes) verdict(f *fleet, _ *rand.Rand) {
	for _, l := range t.limits {
		for _, p := range both(f) {
			for t.take(l, p, 1, false) { // until nothing is left
			}
		}
		if l.granted > limitOfAll || l.granted+l.unknown < limitOfAll {
			t.addf("%s: got %d permits granted (%d more may be) and the rest denied, want %d", l.call.Key, l.granted, l.unknown, limitOfAll)
		}
		if len(l.by) != 2 {
			t.addf("%s: got permits granted by %v, want some by both versions", l.call.Key, l.by)
		}
		for _, p := range both(f) {
			if a, _ := t.do(p, "limit.peek", l.call); a.N != 0 {
				t.addf("%s: got %d left by the %s, want 0", l.call.Key, a.N, p.version)
			}
		}
	}
}
