//go:build neap_upgrade

package upgrade

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

// holds is the area of locks: one holder at a time, and fences that grow.
type holds struct {
	faults
	crossings

	locks []*locked
}

type locked struct {
	key string

	mu      sync.Mutex
	holder  string // what the holder's call got; "" while there is none, as far as is known
	fence   int64
	last    string            // the version of the last holder
	overlap map[string]string // by holder: which version got the lock beside it
}

func newHolds() *holds {
	h := &holds{}
	for i := range 4 {
		h.locks = append(h.locks, &locked{key: fmt.Sprint("job ", i), overlap: map[string]string{}})
	}
	return h
}

func (h *holds) name() string { return "locks" }

func (h *holds) session(f *fleet, r *rand.Rand) {
	p := f.pick(r)
	defer p.sessions.Done()
	h.hold(h.locks[r.IntN(len(h.locks))], p, r)
}

func (h *holds) hold(l *locked, p *process, r *rand.Rand) {
	c := wire.Call{Conf: wire.Conf{Name: "load", Lease: shortLease, Wait: 40 * second}, Key: l.key, As: unique()}
	a, answered := h.do(p, "lock.acquire", c)
	switch {
	case !answered:
		return
	case a.Word != "":
		h.addf("%s: acquire by the %s: got the error %q, want the lock", l.key, p.version, a.Text)
		return
	}
	l.mu.Lock()
	if a.Fence <= l.fence {
		h.addf("%s: got the fence %d by the %s after %d, want a larger one", l.key, a.Fence, p.version, l.fence)
	}
	if l.holder != "" {
		l.overlap[l.holder] = fmt.Sprintf("the %s was granted the lock while the %s held it", p.version, l.last)
	}
	h.note(l.last, p.version)
	l.fence, l.holder, l.last = a.Fence, c.As, p.version
	l.mu.Unlock()

	time.Sleep(time.Duration(r.Int64N(int64(2 * time.Millisecond))))

	l.mu.Lock()
	if l.holder == c.As {
		l.holder = ""
	}
	l.mu.Unlock()
	a, answered = h.do(p, "lock.release", of(c))
	l.mu.Lock()
	defer l.mu.Unlock()
	// A caller that released it without an error held it to the end. Any other lost it in
	// a pause.
	if beside := l.overlap[c.As]; beside != "" && answered && a.Word == "" {
		h.addf("%s: %s", l.key, beside)
	}
}

func (h *holds) verdict(f *fleet, r *rand.Rand) {
	for _, l := range h.locks {
		for _, p := range both(f) {
			h.hold(l, p, r)
			if a, _ := h.do(p, "lock.inspect", wire.Call{Conf: wire.Conf{Name: "load", Lease: shortLease, Wait: 40 * second}, Key: l.key}); a.OK || a.Fence != l.fence {
				h.addf("%s in the end: got held %v, fence %d by the %s, want it free with %d", l.key, a.OK, a.Fence, p.version, l.fence)
			}
		}
	}
	h.judge(&h.faults, "locks")
}
