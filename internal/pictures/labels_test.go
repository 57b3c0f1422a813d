package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/svg"
)

// TestLabelsHaveRoom: in a diagram nothing is in the way of a label.
func TestLabelsHaveRoom(t *testing.T) {
	t.Parallel()
	for _, g := range []*diagram{guard, lock} {
		for i, a := range g.arrows {
			if found := g.clashes(i); len(found) > 0 {
				t.Errorf("%s: got %q in the way of %q, want nothing", g.title, found, a.label.text)
			}
		}
	}
}

func TestALabelInTheWayIsFound(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]svg.Point{
		"a state":              svg.At(110, 246),
		"the frame":            svg.At(245, 173),
		"the caption":          svg.At(28, 193),
		"the edge of the page": svg.At(2, 160),
		"another label":        svg.At(119, 164),
		"an arrow":             svg.At(245, 233.6),
	} {
		crowded := *guard
		crowded.arrows = append(slices.Clip(crowded.arrows),
			arrow{from: noRecord, to: pending, label: label{at.X, at.Y, atStart, "label"}})
		if got := strings.Join(crowded.clashes(len(crowded.arrows)-1), ", "); !strings.Contains(got, want) {
			t.Errorf("got %q in the way of a label at %s, want %s", got, at, want)
		}
	}
}

// room is what the lines of a label take.
func (l label) room() svg.Box {
	lines := strings.Split(l.text, "\n")
	room := svg.TextBox(l.x, l.y, l.class, lines[0])
	for i, line := range lines {
		b := svg.TextBox(l.x, l.y+lineHigh*float64(i), l.class, line)
		room = svg.Box{
			Left: min(room.Left, b.Left), Top: room.Top, Right: max(room.Right, b.Right), Bottom: b.Bottom,
		}
	}
	return room
}

// clashes names what is in the way of an arrow's label: boxes, edges, other
// labels, arrows, its own among them.
func (g *diagram) clashes(of int) (found []string) {
	b := g.arrows[of].label.room()
	wider := svg.Box{Left: b.Left - 3, Top: b.Top - 2, Right: b.Right + 3, Bottom: b.Bottom + 2}
	met := func(is bool, what string) {
		if is {
			found = append(found, what)
		}
	}
	for _, s := range g.states {
		met(wider.Meets(g.box(s.name)), "a state")
	}
	met(wider.Meets(g.group.frame) && !wider.Within(g.group.frame), "the frame")
	met(wider.Meets(svg.TextBox(g.caption().X, g.caption().Y, svg.Plain, g.group.name)), "the caption")
	met(!b.Within(svg.Box{Left: 8, Top: 8, Right: pageWide - 8, Bottom: g.height - 8}), "the edge of the page")
	for i, a := range g.arrows {
		met(i != of && wider.Meets(a.label.room()), "another label")
		c := g.curve(a)
		for n := range 129 {
			met(wider.Meets(svg.Around(along(c, float64(n)/128), 5, 5)), "an arrow")
		}
	}
	return found
}

// along is the point of a cubic curve at t, from 0 to 1.
func along(c [4]svg.Point, t float64) svg.Point {
	var p svg.Point
	u := 1 - t
	for i, share := range [4]float64{u * u * u, 3 * t * u * u, 3 * t * t * u, t * t * t} {
		p = p.Toward(c[i], share)
	}
	return p
}
