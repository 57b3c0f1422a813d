package console

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/store"
)

// many are 5,000 limiters with two policies each, 5,000 lockers that hold a lock each, and one server.
func many() (all []store.Gauge) {
	for i := range 5000 {
		all = append(all, store.Gauge{Primitive: store.Limit, Name: fmt.Sprint("limiter ", i), Policies: []string{"second", "day"}})
	}
	for i := range 5000 {
		all = append(all, store.Gauge{Primitive: store.Lock, Name: fmt.Sprint("locker ", i), Active: 1, Waiting: 2, Background: 3, Open: i == 4999})
	}
	return append(all, store.Gauge{Primitive: store.Server, Name: "127.0.0.1:1", Open: true, Failing: time.Second})
}

// drawn is how many lines the page has for gauges and events together, without those of the others and of servers.
func drawn(gauges []gauge, lines map[id][]string) int {
	all := map[rowKey]bool{}
	for which, policies := range lines {
		for _, policy := range policies {
			all[rowKey{which.Primitive, which.Name, policy}] = true
		}
	}
	for _, g := range gauges {
		policies := g.Policies
		if len(policies) == 0 {
			policies = []string{""}
		}
		for _, policy := range policies {
			if !g.Other && g.Primitive != store.Server {
				all[rowKey{g.Primitive, g.Name, policy}] = true
			}
		}
	}
	return len(all)
}

func find(all []gauge, primitive store.Primitive, name string, other bool) *gauge {
	at := slices.IndexFunc(all, func(g gauge) bool { return g.Primitive == primitive && g.Name == name && g.Other == other })
	if at < 0 {
		return nil
	}
	return &all[at]
}

// TestGaugesAreBounded: of 10,000 primitives 100 lines are told apart, and nothing of what they hold is lost.
func TestGaugesAreBounded(t *testing.T) {
	t.Parallel()
	called := map[id][]string{{store.Limit, "limiter 4711"}: {"second"}, {store.Limit, "limiter 7"}: {"", "second"}}
	got := bounded(many(), called)
	if n := drawn(got, called); n != maxRows {
		t.Errorf("got %d lines, want %d", n, maxRows)
	}
	if len(got) > maxRows+3 {
		t.Errorf("got %d gauges, want %d, one of other limiters, one of other lockers and one of the server at most", len(got), maxRows)
	}
	active, waiting, background := 0, 0, 0
	for _, g := range got {
		active, waiting, background = active+g.Active, waiting+g.Waiting, background+g.Background
	}
	if active != 5000 || waiting != 10_000 || background != 15_000 {
		t.Errorf("got %d active, %d waiting and %d in the background, want 5000, 10000 and 15000: all that there are", active, waiting, background)
	}
	for which := range called {
		if g := find(got, store.Limit, which.Name, false); g == nil || !slices.Contains(g.Policies, "day") {
			t.Errorf("%s, which is called: got %+v, want it with both of its policies", which.Name, g)
		}
	}
	if find(got, store.Lock, "locker 0", false) == nil || find(got, store.Limit, "limiter 0", false) != nil {
		t.Error("got no line for a locker that holds a lock, or one for a limiter without calls, want the locker before it")
	}
	if g := find(got, store.Lock, "", true); g == nil || !g.Open {
		t.Errorf("got %+v of other lockers, want that calls of one are held back", g)
	}
	if g := find(got, store.Limit, "", true); g == nil || g.Open {
		t.Errorf("got %+v of other limiters, want one gauge, and no call held back", g)
	}
	if g := find(got, store.Server, "127.0.0.1:1", false); g == nil || !g.Open || g.Failing != 1000 {
		t.Errorf("got %+v of the server, want it as it is", g)
	}
}

// TestEventsHaveTheirLinesFirst: if they leave no room, a gauge shows the policies that were called, and adds no line.
func TestEventsHaveTheirLinesFirst(t *testing.T) {
	t.Parallel()
	called := map[id][]string{}
	for i := range maxRows {
		called[id{store.Limit, fmt.Sprint("limiter ", i)}] = []string{"second"}
	}
	got := bounded(many(), called)
	if n := drawn(got, called); n != maxRows {
		t.Errorf("got %d lines, want %d", n, maxRows)
	}
	if g := find(got, store.Limit, "limiter 0", false); g == nil || !slices.Equal(g.Policies, []string{"second"}) {
		t.Errorf("got %+v, want the policy that was called alone", g)
	}
	if g := find(got, store.Lock, "", true); g == nil || g.Active != 5000 {
		t.Errorf("got %+v of other lockers, want all 5000", g)
	}
}

// TestGaugesOfOneNameAreOne, with the policies of both, and without a change of those of either.
func TestGaugesOfOneNameAreOne(t *testing.T) {
	t.Parallel()
	room := []string{"a", "b", "kept"}
	got := bounded([]store.Gauge{
		{Primitive: store.Limit, Name: "api", Policies: room[:2], Waiting: 1},
		{Primitive: store.Limit, Name: "api", Policies: []string{"b", "c"}, Waiting: 2, Open: true},
		{Primitive: store.InFlight, Name: "api", Active: 3},
	}, nil)
	if len(got) != 2 {
		t.Fatalf("got %+v, want two", got)
	}
	if g := find(got, store.Limit, "api", false); g == nil || g.Waiting != 3 || !g.Open || !slices.Equal(g.Policies, []string{"a", "b", "c"}) {
		t.Errorf("got %+v, want 3 waiting, and the policies a, b and c", g)
	}
	if room[2] != "kept" {
		t.Errorf("got the policies of the primitive changed: %q", room)
	}
}

// TestAStreamIsBounded: with 5,000 lockers, 200 of them used, a stream sends no more than docs/console.md says, which is
// 40 kB a second in two frames.
func TestAStreamIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := away(t)
		c := Handler(st, everyone, nil).(*console)
		var alive []*lock.Locker
		for i := range 5000 {
			alive = append(alive, must(lock.New(st, fmt.Sprint("locker-of-tenant-", i), nil))(t))
		}
		for i := range 200 {
			c.timeline.hear(store.Event{Primitive: store.Lock, Name: alive[i].Name(), Outcome: store.Granted}, store.Event{Primitive: store.Lock, Name: alive[i].Name(), Outcome: store.Lost})
		}
		time.Sleep(each)
		f := c.frame(c.timeline.now(), c.timeline.now())
		text := must(json.Marshal(f))(t)
		if len(f.Gauges) != maxRows+1 || len(text) > 20_000 {
			t.Errorf("got %d gauges in a frame of %d bytes, want %d, and 20 kB at most", len(f.Gauges), len(text), maxRows+1)
		}
		time.Sleep(time.Hour)
		if lines := c.timeline.lines(c.timeline.now()); len(lines) != 0 {
			t.Errorf("after an hour: got the lines %v, want none", lines)
		}
		runtime.KeepAlive(alive)
	})
}

// TestOpenPagesShareGauges: two frames within a quarter of a second have the gauges of one reading. A later frame has new ones.
func TestOpenPagesShareGauges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := away(t)
		c := Handler(st, everyone, nil).(*console)
		first := c.frame(1, 1).Gauges
		l := must(lock.New(st, "jobs", nil))(t)
		time.Sleep(each/2 - time.Nanosecond)
		if got := c.frame(1, 1).Gauges; len(got) != len(first) {
			t.Errorf("in the same quarter of a second: got the gauges %+v, want those that were read before", got)
		}
		time.Sleep(time.Nanosecond)
		if got := c.frame(1, 1).Gauges; find(got, store.Lock, "jobs", false) == nil {
			t.Errorf("a quarter of a second later: got the gauges %+v, want that of the locker too", got)
		}
		runtime.KeepAlive(l)
	})
}

// BenchmarkGauges is what all open pages together cost, four times a second at most.
func BenchmarkGauges(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n, "-limiters"), func(b *testing.B) {
			st := away(b)
			var alive []*limit.Limiter
			for i := range n {
				alive = append(alive, must(limit.New(st, fmt.Sprint("limiter-of-tenant-", i), []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, nil))(b))
			}
			b.ReportAllocs()
			for b.Loop() {
				bounded(st.Gauges(), nil)
			}
			runtime.KeepAlive(alive)
		})
	}
}
