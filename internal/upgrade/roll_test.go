//go:build neap_upgrade

package upgrade

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// fleet are the processes of one service behind a load balancer.
type fleet struct {
	test *testing.T
	at   place

	mu   sync.Mutex
	live []*process
}

// pick chooses a process, which is not ended before the caller is through with it.
func (f *fleet) pick(r *rand.Rand) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.live[r.IntN(len(f.live))]
	p.sessions.Add(1)
	return p
}

// step replaces one process by another, as one step of a deploy.
type step struct {
	at      int // the process
	version string
	crash   bool // the one that goes is killed
}

// replace starts a process and ends the one that it replaces: it gets no more requests,
// finishes those that it has, and ends. A crash does not wait.
func (f *fleet) replace(j judge, s step) {
	comes := startFor(f.test, j, s.version, f.at)
	f.mu.Lock()
	goes := f.live[s.at]
	f.live[s.at] = comes
	f.mu.Unlock()
	if s.crash {
		goes.kill()
		return
	}
	goes.sessions.Wait()
	if err := goes.end(); err != nil {
		j.Errorf("a %s that was asked to end: %v", goes.version, err)
	}
}

// area is a part of the load: what it does, and what it knows that Redis must have.
type area interface {
	name() string
	session(f *fleet, r *rand.Rand)
	verdict(f *fleet, r *rand.Rand)
	complaints() []string
}

// faults are what an area complains of.
type faults struct {
	mu   sync.Mutex
	said []string
	more int
}

func (f *faults) addf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.said) < 5 {
		f.said = append(f.said, fmt.Sprintf(format, args...))
		return
	}
	f.more++
}

func (f *faults) complaints() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.more > 0 {
		return append(slices.Clone(f.said), fmt.Sprintf("and %d more", f.more))
	}
	return slices.Clone(f.said)
}

const (
	processes = 3
	clients   = 12
	perStep   = 1500 // sessions between two steps, and during each
)

// load rolls a fleet from one version to another and back while clients use it, and returns
// what each area complains of.
func load(t *testing.T, j judge, at place, before, after string) map[string][]string {
	f := &fleet{test: t, at: at}
	for _, version := range []string{before, after} { // nothing is to be built under load
		if _, err := workers[version](); err != nil {
			j.Fatalf("%v", err)
		}
	}
	for range processes {
		f.live = append(f.live, startFor(t, j, before, at))
	}
	areas := []area{newTakes(f), newHolds(), newRuns(), newSales(f), newFlights()}

	// A process of each version is there at all times but at both ends and in the middle.
	steps := []step{
		{0, after, false},
		{1, after, true},
		{2, after, false},
		{0, before, false},
		{1, before, true},
		{2, before, false},
	}
	var begun, allowed atomic.Int64
	allowed.Store(perStep)
	wait := func(what string, cond func() bool) bool {
		for end := time.Now().Add(10 * time.Minute); !cond(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				j.Errorf("got no %s after 10 minutes, want it", what)
				return false
			}
		}
		return true
	}
	seed := redistest.Seed(t)
	var users sync.WaitGroup
	for i := range clients {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		users.Go(func() {
			for {
				n := begun.Add(1)
				if n > int64(len(steps)+1)*perStep || !wait("next step of the deploy", func() bool { return n <= allowed.Load() }) {
					return
				}
				areas[r.IntN(len(areas))].session(f, r)
			}
		})
	}
	for _, s := range steps {
		wait("end of the sessions before a step", func() bool { return begun.Load() > allowed.Load() })
		allowed.Add(perStep)
		f.replace(j, s)
	}
	users.Wait()
	// The last word is with both versions.
	f.replace(j, step{0, after, false})
	all := map[string][]string{}
	r := rand.New(rand.NewPCG(seed, clients))
	for _, a := range areas {
		a.verdict(f, r)
		all[a.name()] = a.complaints()
	}
	return all
}

// TestNothingIsLostInARollingUpgrade has processes of both versions share limits, locks,
// guards, stock and requests in flight under load, while one version replaces the other,
// and is replaced by it again. Two of the six processes that go are killed.
func TestNothingIsLostInARollingUpgrade(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, at place) {
		for name, said := range load(t, t, at, baseline, tree) {
			for _, what := range said {
				t.Errorf("%s: %s", name, what)
			}
		}
	})
}

// TestAnotherFormatFailsEachArea is the control of the load.
func TestAnotherFormatFailsEachArea(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	for name, said := range load(t, t, place{server.Addr(), server.Prefix(t)}, mutant, tree) {
		if len(said) == 0 {
			t.Errorf("%s: got no complaint about a version with other formats and keys, want one", name)
		}
	}
}

// crossings counts what went from one version to another. Without crossings an area
// proves nothing.
type crossings struct {
	mu sync.Mutex
	to map[string]int
}

func (c *crossings) note(from, to string) {
	if from == "" || from == to {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.to == nil {
		c.to = map[string]int{}
	}
	c.to[to]++
}

// judge complains unless there was one at least in each direction.
func (c *crossings) judge(say *faults, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.to) != 2 {
		say.addf("%s went from one version to the other %v times, want both ways", what, c.to)
	}
}
