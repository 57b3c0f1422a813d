package labels_test

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/labels"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// itself is a table of the labels.
func itself() *labels.Table[labels.Labels] {
	return labels.NewTable(func(l labels.Labels) labels.Labels { return l })
}

// TestRoomForPolicies has room for the policies that a limiter was made with, and for some more. A policy that has room
// keeps it.
func TestRoomForPolicies(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	l, err := limit.New(st, "n", []limit.Policy{limit.FixedWindow{Name: "own", Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := itself()
	of := func(policy string) string {
		return table.Of(&store.Event{Primitive: store.Limit, Name: "n", Policy: policy, Outcome: store.Granted}).Policy
	}
	for n := range labels.MostPolicies {
		name := fmt.Sprint("plan-", n)
		if got := of(name); got != name {
			t.Errorf("policy %d: got the label %q, want %q", n, got, name)
		}
	}
	for _, c := range []struct{ policy, want string }{{"more", labels.Other}, {"own", labels.Other}, {"plan-0", "plan-0"}, {"", ""}} {
		if got := of(c.policy); got != c.want {
			t.Errorf("%q: got the label %q, want %q", c.policy, got, c.want)
		}
	}
	table.Read(st)
	if got := of("own"); got != "own" {
		t.Errorf("a policy that the limiter was made with: got the label %q, want its name", got)
	}
	if other := table.Of(&store.Event{Primitive: store.Limit, Name: "other", Policy: "more"}).Policy; other != "more" {
		t.Errorf("a policy of another limiter: got the label %q, want its name", other)
	}
	_ = l.Name()
}

// TestRoomForNames is limited for each primitive, in events and gauges alike.
func TestRoomForNames(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, redistest.Embedded(), store.Options{})
	table := itself()
	names := map[string]bool{}
	var all []*lock.Locker
	for n := range 3 * labels.MostNames {
		name := fmt.Sprint("tenant-", n)
		l, err := lock.New(st, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
		names[table.Of(&store.Event{Primitive: store.Lock, Name: name, Outcome: store.Granted}).Name] = true
	}
	if len(names) != labels.MostNames+1 || !names[labels.Other] {
		t.Errorf("got %d names of locks, want %d and %q", len(names), labels.MostNames, labels.Other)
	}
	held, err := all[len(all)-1].Try(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release(context.Background())
	active := 0
	for _, g := range table.Read(st) {
		if g.Primitive == store.Lock && g.Name == labels.Other {
			active = g.Active
		}
		if g.Primitive == store.Lock && !names[g.Name] {
			t.Errorf("got a gauge of %q, want those with room", g.Name)
		}
	}
	if active != 1 {
		t.Errorf("got %d locks of those without room, want 1", active)
	}
	if got := table.Of(&store.Event{Primitive: store.Guard, Name: "g"}).Name; got != "g" {
		t.Errorf("a guard: got the name %q, want its own", got)
	}
}

// TestPoliciesAreBounded makes thousands of limiters, each with a policy of its own, under a name of their own or under
// one name. The entries of their events stay few.
func TestPoliciesAreBounded(t *testing.T) {
	t.Parallel()
	const limiters = 4000
	for what, c := range map[string]struct {
		nameOf func(n int) string
		most   int
	}{
		"a name each": {func(n int) string { return fmt.Sprint("tenant", n) }, labels.MostNames + labels.MostPolicies + 1},
		"one name":    {func(int) string { return "tenants" }, labels.MostOwn + labels.MostPolicies + 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			st := storetest.Open(t, redistest.Embedded(), store.Options{})
			made := map[labels.Labels]bool{}
			table := labels.NewTable(func(l labels.Labels) labels.Labels {
				made[l] = true
				return l
			})
			var all []*limit.Limiter
			for n := range limiters {
				l, err := limit.New(st, c.nameOf(n), []limit.Policy{limit.FixedWindow{Limit: int64(100 + n), Window: time.Hour}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, l)
			}
			table.Read(st)
			for n := range all {
				table.Of(&store.Event{Primitive: store.Limit, Name: c.nameOf(n), Policy: fmt.Sprintf("window-%d-1h", 100+n), Outcome: store.Granted})
			}
			if len(made) != c.most {
				t.Errorf("got %d entries, want %d", len(made), c.most)
			}
			runtime.KeepAlive(all) // a store keeps none of them alive
		})
	}
}

// TestPrimitivesOfOneNameAreOne: their gauges are added up, in whatever order they come.
func TestPrimitivesOfOneNameAreOne(t *testing.T) {
	t.Parallel()
	busy := store.Gauge{
		Primitive: store.Lock, Name: "n", Policies: []string{"p"},
		Active: 1, Waiting: 2, Background: 3, Open: true,
	}
	idle := store.Gauge{Primitive: store.Lock, Name: "n", Active: 10, Waiting: 20, Background: 30}
	other := store.Gauge{Primitive: store.Lock, Name: "other", Active: 7}
	sum := store.Gauge{Primitive: store.Lock, Name: "n", Active: 11, Waiting: 22, Background: 33, Open: true}
	for what, gauges := range map[string][]store.Gauge{"the busy one first": {busy, other, idle}, "the idle one first": {idle, other, busy}} {
		st := storetest.Open(t, redistest.Embedded(), store.Options{})
		for i := range gauges {
			store.Register(st, &gauges[i], func(g *store.Gauge) store.Gauge { return *g }, nil)
		}
		got := itself().Read(st)
		if len(got) == 2 {
			got[0].Policies = nil // those of the first
		}
		if want := []store.Gauge{sum, other}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
		runtime.KeepAlive(gauges) // a store keeps none of them alive
	}
}

// TestManyAtOnce asks from many goroutines: each entry is made once.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	made := map[labels.Labels]int{}
	table := labels.NewTable(func(l labels.Labels) labels.Labels {
		made[l]++
		return l
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range 1000 {
				table.Of(&store.Event{Primitive: store.Limit, Name: "n", Policy: fmt.Sprint(n % 100), Outcome: store.Granted})
			}
		})
	}
	all.Wait()
	if len(made) != labels.MostPolicies+1 {
		t.Errorf("got %d entries, want %d", len(made), labels.MostPolicies+1)
	}
	for l, n := range made {
		if n != 1 {
			t.Errorf("%v: made %d times, want once", l, n)
		}
	}
}

// TestOfNoAllocations: neither what has room nor what has none.
func TestOfNoAllocations(t *testing.T) {
	table := itself()
	e := store.Event{Primitive: store.Limit, Name: "n", Outcome: store.Granted}
	for n := range labels.MostPolicies + 1 {
		e.Policy = fmt.Sprint(n)
		table.Of(&e)
		if n := testing.AllocsPerRun(100, func() { table.Of(&e) }); n > 0 {
			t.Errorf("policy %s: got %v allocations, want none", e.Policy, n)
		}
	}
}
