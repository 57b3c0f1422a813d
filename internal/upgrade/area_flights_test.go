//go:build neap_upgrade

package upgrade

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

// flights is the area of requests in flight: no more than a limit at once.
type flights struct {
	faults
	crossings

	call wire.Call

	mu    sync.Mutex
	count int64
	most  int64
	last  string
}

const mostInFlight = 2

func newFlights() *flights {
	return &flights{call: wire.Call{Conf: wire.Conf{Name: "load", Slots: mostInFlight, Lease: shortLease}, Key: "reports"}}
}

func (g *flights) name() string { return "requests in flight" }

func (g *flights) session(f *fleet, r *rand.Rand) {
	p := f.pick(r)
	defer p.sessions.Done()
	c := g.call
	c.As = unique()
	a, answered := g.do(p, "slots.try", c)
	if !answered || !a.OK {
		return
	}
	g.mu.Lock()
	g.count++
	g.most = max(g.most, g.count)
	if g.count > mostInFlight {
		g.addf("got %d in flight at once, want %d at most", g.count, mostInFlight)
	}
	g.note(g.last, p.version)
	g.last = p.version
	g.mu.Unlock()
	time.Sleep(time.Duration(r.Int64N(int64(4 * time.Millisecond))))
	g.mu.Lock()
	g.count--
	g.mu.Unlock()
	g.do(p, "slots.release", of(c))
}

func (g *flights) verdict(f *fleet, _ *rand.Rand) {
	for _, p := range both(f) {
		var a wire.Answer
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if a, _ = g.do(p, "slots.count", g.call); a.N == 0 {
				break
			}
		}
		if a.N != 0 {
			g.addf("got %d in flight by the %s a minute after the last request, want 0", a.N, p.version)
		}
	}
	if g.most < mostInFlight {
		g.addf("got %d in flight at the most, want the limit of %d", g.most, mostInFlight)
	}
	g.judge(&g.faults, "slots")
}
