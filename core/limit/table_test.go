package limit_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// TestTable compares each kind of policy, and sets of them, with each feature and on each driver,
// with the model: every figure of every decision, on a clock that the test sets.
func TestTable(t *testing.T) {
	t.Parallel()
	failfast := flag.Lookup("test.failfast").Value.String() == "true" // which does not end parallel tests
	var failed atomic.Bool
	var met redistest.Coverage
	cells := 0
	t.Cleanup(func() {
		if met.Times("cells") < cells { // others were left out on purpose
			return
		}
		met.Want(t, met.Times("together")/4, "merged")
		met.Want(t, met.Times("steps")/8000, "denied", "banned", "on hold", "remembered", "decided in an outage",
			"a refund", "a refund of nothing", "settled to less", "settled to more", "forgiven", "a reset", "a wait",
			"a time to live", "a clock set back", "a crash", "an override")
	})
	for _, d := range drivers {
		for _, f := range features {
			for _, row := range slices.Concat(lua.Kinds, []string{"set"}) {
				if slices.Contains(f.without, row) || f.on != "" && f.on != d.name {
					continue
				}
				cells++
				t.Run(d.name+"/"+f.name+"/"+row, func(t *testing.T) {
					t.Parallel()
					if failfast && failed.Load() {
						return
					}
					t.Cleanup(func() { failed.Store(failed.Load() || t.Failed()) })
					inBubble := d.before(t)
					rng := redistest.Rand(t)
					synctest.Test(t, func(t *testing.T) {
						all, walks := inBubble(t), redistest.Steps(5_000)/100
						if d.few {
							walks /= 5
						}
						if f.walks > 0 {
							walks = int(f.walks * float64(walks))
						}
						for i := range max(walks, 1) {
							if failfast && failed.Load() {
								return
							}
							w := newWalk(t, rng, d, f, f.specs(rng, row, rng.IntN(12)))
							w.open(all, fmt.Sprint("w", i))
							for range 50 {
								w.step()
							}
							w.end()
							met.Add(w.seen)
						}
						met.Add(map[string]int{"cells": 1})
					})
				})
			}
		}
	}
}

const day = 24 * time.Hour

// specOf returns the i-th policy of a kind, or a random one.
func specOf(rng *rand.Rand, kind string, i int) spec {
	k := limit.Kinds[kind]
	return spec{base: k.Policy(rng, i), kept: k.Kept}
}

const random = math.MaxInt

// specs makes policies that New accepts.
func (f *feature) specs(rng *rand.Rand, row string, i int) (all []spec) {
	var refused error
	for try := range 1000 {
		all = nil
		for n := range size(rng, row) {
			kind := row
			if row == "set" {
				kind = lua.Kinds[rng.IntN(len(lua.Kinds))]
			}
			if f.changed && limit.Kinds[kind].Drains { // the others begin afresh under other numbers
				kind = "kept"
			}
			s := specOf(rng, kind, i+n+try)
			if f.change != nil {
				s = f.change(rng, s)
			}
			if !slices.ContainsFunc(all, func(o spec) bool { return o.base.PolicyName() == s.base.PolicyName() }) {
				all = append(all, s)
			}
		}
		if _, refused = limit.NewLocal("n", policiesOf(all), nil); refused == nil {
			return all
		}
	}
	panic(refused)
}

func size(rng *rand.Rand, row string) int {
	if row == "set" {
		return 2 + rng.IntN(3)
	}
	return 1
}
