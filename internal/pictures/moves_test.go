package pictures

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

// diagram is what a picture shows of a record: its states, and what moves it from one to
// another. A move may leave the states of the group alike.
type diagram struct {
	file    string
	group   string
	members []string
	arrows  []arrow
	notes   []note
}

// arrow is a move, or several that lead the same way. One whose ends are the
// same changes the record and not the state.
type arrow struct {
	from, to, text string
	moves          moves
}

// moves are the events that have an effect, each with the states in which it has
// this effect. An event stands for all whose names begin with it.
type moves map[string][]string

// note is told below, of moves for which an arrow would only be in the way.
type note struct {
	text  string
	moves moves
	to    string // "" is the state that it was in
}

// told is what the picture says in words.
func (g *diagram) told() string {
	var all []string
	for _, a := range g.arrows {
		if a.from == a.to {
			all = append(all, fmt.Sprintf("%q stays so by: %s.", a.from, a.text))
		} else {
			all = append(all, fmt.Sprintf("From %q to %q: %s.", a.from, a.to, a.text))
		}
	}
	for _, n := range g.notes {
		all = append(all, n.text)
	}
	return strings.Join(all, " ")
}

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
	if in := words(t, g.file); !strings.HasSuffix(in, ". "+g.told()) {
		t.Errorf("%s says %q, want it to end with %q", g.file, in, g.told())
	}
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
						g.file, text, event, state, to)
				}
			}
		}
	}
	covered := map[string]bool{}
	for _, a := range g.arrows {
		text := a.text
		show(text, a.moves, a.to)
		for event, states := range a.moves {
			verb, rest, _ := strings.Cut(event, " ")
			if verb != "time" && verb != "hand" && rest != "again" && !strings.Contains(text, verb) {
				t.Errorf("%s: %q does not name %q", g.file, text, verb)
			}
			for _, s := range states {
				covered[fmt.Sprint(a.from, s, a.to)] = true
			}
		}
		states := []string{a.from}
		if a.from == g.group {
			states = g.members
		}
		for _, s := range states {
			if !covered[fmt.Sprint(a.from, s, a.to)] {
				t.Errorf("%s: no move leads from %q to %q", g.file, s, a.to)
			}
		}
	}
	for _, n := range g.notes {
		show(n.text, n.moves, n.to)
	}
	for real := range moved {
		if shown[real] != 1 {
			t.Errorf("%s: got %d moves that show %q from %q to %q, want 1",
				g.file, shown[real], real.event, real.state, real.to)
		}
	}
}
