//go:build neap_upgrade

package upgrade

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

// runs is the area of guards: each key runs once, and every other caller gets its result.
type runs struct {
	faults
	crossings

	keys []*run
}

type run struct {
	key string

	mu      sync.Mutex
	begun   int      // runs that did not say that nothing was done
	crashed int      // runs whose process was killed before it was told that they are noted
	by      string   // the version that concluded
	results [][]byte // what was sent as a result
	done    []byte   // what was noted
}

func newRuns() *runs {
	g := &runs{}
	for i := range 400 {
		g.keys = append(g.keys, &run{key: fmt.Sprint("order-", strings.Repeat("x", i%3*40), i)})
	}
	return g
}

func (g *runs) name() string { return "guards" }

func (g *runs) session(f *fleet, r *rand.Rand) {
	p := f.pick(r)
	defer p.sessions.Done()
	g.deliver(g.keys[r.IntN(len(g.keys))], p, r, "guard.begin")
}

func (g *runs) deliver(k *run, p *process, r *rand.Rand, how string) {
	c := wire.Call{Conf: wire.Conf{Name: "load", Lease: shortLease, Wait: 40 * second}, Key: k.key, As: unique()}
	a, answered := g.do(p, how, c)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !answered: // the run may have begun, and no caller was told
	case a.Word == "in flight" && how == "guard.begin":
	case a.Word != "":
		g.addf("%s: %s by the %s: got the error %q, want a claim or a result", k.key, how, p.version, a.Word)
	case a.OK:
		if k.done == nil && slices.ContainsFunc(k.results, func(b []byte) bool { return bytes.Equal(a.Bytes, b) }) {
			k.done = a.Bytes
		}
		if k.done == nil || !bytes.Equal(a.Bytes, k.done) {
			g.addf("%s: got a result of %d bytes by the %s, want the %d of the %s that ran it", k.key, len(a.Bytes), p.version, len(k.done), k.by)
		}
		g.note(k.by, p.version)
	default:
		g.run(k, p, r, c)
	}
}

// run does the work of a claim and concludes it. It unlocks k.mu only while the call is
// on its way.
func (g *runs) run(k *run, p *process, r *rand.Rand, c wire.Call) {
	if k.begun++; k.done != nil || k.begun > 1+k.crashed {
		g.addf("%s: the %s runs it again (%d times, %d of which crashed), and it was done by the %s", k.key, p.version, k.begun, k.crashed, k.by)
	}
	c.How, c.Bytes = "done", some(1+r.IntN(800))
	if r.IntN(10) == 0 {
		c.How, c.Bytes = "nothing", nil
		k.begun--
	} else {
		k.by = p.version
		k.results = append(k.results, c.Bytes)
	}
	k.mu.Unlock()
	a, answered := g.do(p, "guard.conclude", of(c))
	k.mu.Lock()
	switch {
	case !answered:
		if c.How == "done" {
			k.crashed++
		}
	case a.Word != "":
		g.addf("%s: the claim of the %s: got the error %q, want it concluded", k.key, p.version, a.Word)
	case c.How == "done":
		k.done = c.Bytes
	}
}

func (g *runs) verdict(f *fleet, r *rand.Rand) {
	for _, k := range g.keys {
		if len(k.results) == 0 {
			continue
		}
		for k.done == nil && len(g.complaints()) == 0 { // its process was killed
			g.deliver(k, both(f)[0], r, "guard.await")
		}
		for _, p := range both(f) {
			g.deliver(k, p, r, "guard.await")
		}
	}
	g.judge(&g.faults, "results")
}
