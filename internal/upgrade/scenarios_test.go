//go:build neap_upgrade

package upgrade

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// pair are two processes of two versions and a name for keys that no other scenario has.
// What one stores, two reads.
type pair struct {
	judge

	one, two *process
	key      string
	spare    func() *process // another process of the version of one, which may be killed
	cluster  bool
}

// scenario is what one version stores and the other goes on with.
type scenario struct {
	name string
	run  func(p *pair)
}

func scenarios() []scenario {
	return slices.Concat(limitScenarios, lockScenarios, guardScenarios, stockScenarios)
}

// TestEachVersionGoesOnWithTheOthersRecords runs each scenario in both directions: what
// the baseline stored is the tree's to go on with, as in an upgrade, and the other way
// around, as in a rollback.
func TestEachVersionGoesOnWithTheOthersRecords(t *testing.T) {
	t.Parallel()
	for _, way := range []struct{ name, one, two string }{{"upgrade", baseline, tree}, {"rollback", tree, baseline}} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			places(t, func(t *testing.T, at place) {
				one, two := start(t, way.one, at), start(t, way.two, at)
				for _, s := range scenarios() {
					t.Run(s.name, func(t *testing.T) {
						t.Parallel()
						s.run(&pair{
							judge: t, one: one, two: two, key: keyOf(way.name, s.name), cluster: strings.Contains(at.addrs, ","),
							spare: func() *process { return start(t, way.one, at) },
						})
					})
				}
			})
		})
	}
}

// keyOf makes a key for a scenario. Half of the keys have a space, so their subjects are hashed.
func keyOf(way, name string) string {
	if len(name)%2 == 0 {
		return way + " " + name
	}
	return way + "-" + name
}

// TestAnotherFormatFailsEachScenario is the control: every scenario must notice that the
// other version has other formats and keys.
func TestAnotherFormatFailsEachScenario(t *testing.T) {
	t.Parallel()
	failsEach(t, mutant, func(scenario) bool { return true })
}

// TestOtherContentsFailTheScenariosOfLimits is the control of what stands in the records of
// limits, whose keys are the same.
func TestOtherContentsFailTheScenariosOfLimits(t *testing.T) {
	t.Parallel()
	failsEach(t, rewritten, ofContents)
}

func failsEach(t *testing.T, version string, which func(scenario) bool) {
	server := redistest.Standalone(t)
	at := place{server.Addr(), server.Prefix(t)}
	one, two := start(t, version, at), start(t, tree, at)
	for _, s := range scenarios() {
		if !which(s) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			said := accuse(func(j judge) {
				s.run(&pair{
					judge: j, one: one, two: two, key: keyOf("control", s.name),
					spare: func() *process { return startFor(t, j, version, at) },
				})
			})
			if len(said) == 0 {
				t.Error("got no complaint about a version with other formats or keys, want one")
			}
			t.Logf("%.300s", said)
		})
	}
}

// accused is a judge that notes what a scenario complains of.
type accused struct {
	mu   sync.Mutex
	said []string
}

func (a *accused) Helper() {}

func (a *accused) Errorf(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = append(a.said, fmt.Sprintf(format, args...))
}

func (a *accused) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	runtime.Goexit()
}

// accuse runs a scenario and returns what it complains of.
func accuse(run func(j judge)) []string {
	a := &accused{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(a)
	}()
	<-done
	return a.said
}

// awaits waits until cond is true, and ends the scenario if it is not within a minute.
func (p *pair) awaits(what string, cond func() bool) {
	p.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("got no %s within a minute, want it", what)
		}
	}
}

// some is binary text of that length. What it is does not matter, so no seed makes it.
func some(length int) []byte {
	b := make([]byte, length)
	_, _ = rand.Read(b) // never fails
	return b
}

const (
	second = 1000
	hour   = 3600 * second
	day    = 24 * hour

	// shortLease is the lease of each grant that a dead process leaves. A call may take a
	// third of it. A live process renews within that time, also on a busy machine.
	shortLease = 10 * second
)
