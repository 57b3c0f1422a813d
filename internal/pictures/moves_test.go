package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

const key = "{record}"

// bench is a record, the scripts and a clock.
type bench struct {
	t      *testing.T
	server *miniredis.Miniredis
	run    *script.Runner
	now    time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	m, rdb := redistest.Miniredis(t)
	r, err := script.NewRunner(rdb, &script.Options{Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, server: m, run: r}
}

// afresh is without a record.
func (b *bench) afresh() {
	b.server.FlushAll()
	b.now = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	b.server.SetTime(b.now)
}

// call has a millisecond pass, so that what begins anew ends later.
func (b *bench) call(sc *script.Script, args ...any) {
	b.t.Helper()
	b.pass(time.Millisecond)
	if _, err := b.run.Run(b.t.Context(), sc, []string{key}, args...); err != nil && !errors.Is(err, redis.Nil) {
		b.t.Fatalf("%s %v: %v", sc.Name(), args, err)
	}
}

func (b *bench) pass(d time.Duration) {
	b.now = b.now.Add(d)
	b.server.SetTime(b.now)
}

// expires is when the record does.
func (b *bench) expires() string { return b.now.Add(b.server.TTL(key)).String() }

// step is an event of a record.
type step struct {
	name string
	do   func(b *bench)
	time bool // the clock is moved, and nothing else
}

// met is an event in a state, and where it led.
type met struct{ state, event, to string }

// explore has each event happen in each situation, and tells what moves.
func explore(t *testing.T, ways [][]step, events []step, where, record func(b *bench) string) map[met]bool {
	t.Helper()
	b, moved := newBench(t), map[met]bool{}
	for _, way := range ways {
		for _, e := range events {
			b.afresh()
			for _, s := range way {
				s.do(b)
			}
			from := where(b)
			before := record(b)
			e.do(b)
			to := where(b)
			if from != to || !e.time && record(b) != before {
				moved[met{from, e.name, to}] = true
			}
		}
	}
	return moved
}

// same has a diagram show what moves, each move once, and nothing else.
func same(t *testing.T, g *diagram, moved map[met]bool) {
	t.Helper()
	if len(moved) < len(g.arrows) {
		t.Fatalf("only %v", moved)
	}
	shown := map[met]int{}
	show := func(text string, all moves, to string) {
		for event, states := range all {
			for _, state := range states {
				n := 0
				for real := range moved {
					if real.state == state && real.to == cmp.Or(to, state) && strings.HasPrefix(real.event, event) {
						shown[real]++
						n++
					}
				}
				if n == 0 {
					t.Errorf("%s: %q shows that %q leads from %q to %q, and it does not",
						g.title, text, event, state, to)
				}
			}
		}
	}
	covered := map[string]bool{}
	for _, a := range g.arrows {
		text := a.label.text
		show(text, a.moves, a.to)
		for event, states := range a.moves {
			verb, rest, _ := strings.Cut(event, " ")
			if verb != "time" && verb != "hand" && rest != "again" && !strings.Contains(text, verb) {
				t.Errorf("%s: %q does not name %q", g.title, text, verb)
			}
			for _, s := range states {
				covered[fmt.Sprint(a.from, s, a.to)] = true
			}
		}
		states := []string{a.from}
		if a.from == g.group.name {
			states = g.group.members
		}
		for _, s := range states {
			if !covered[fmt.Sprint(a.from, s, a.to)] {
				t.Errorf("%s: no move leads from %q to %q", g.title, s, a.to)
			}
		}
	}
	for _, n := range g.notes {
		show(n.text, n.moves, n.to)
	}
	for real := range moved {
		if shown[real] != 1 {
			t.Errorf("%s: got %d moves that show %q from %q to %q, want 1",
				g.title, shown[real], real.event, real.state, real.to)
		}
	}
}
