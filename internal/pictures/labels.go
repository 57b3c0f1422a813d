package main

import (
	"math"

	"github.com/neap-go/neap/internal/svg"
)

const letter = 18.0 // a line of a label

// label is where the lines of an arrow's label stand.
type label struct {
	x, y  float64 // of the first line
	class string
	box   svg.Box
}

// labels finds each a place along its arrow where nothing else is. What cannot
// be placed so has the least in its way, and clashes counts it.
func (g *diagram) labels() (all []label, clashes int) {
	for _, a := range g.arrows {
		c := g.curve(a)
		var best label
		least := math.MaxInt
		for _, gap := range []float64{9, 13, 17} {
			for _, t := range []float64{0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7, 0.25, 0.75, 0.2, 0.8} {
				for _, side := range []side{rightward, leftward, top, bottom} {
					l := beside(c.at(t), side, gap, a.label)
					if n := g.clashes(l.box, all); n < least {
						best, least = l, n
					}
				}
			}
		}
		all = append(all, best)
		clashes += least
	}
	return all, clashes
}

// beside has a label stand at a side of a point.
func beside(at svg.Point, where side, gap float64, lines []string) label {
	high := letter * float64(len(lines))
	l := label{x: at.X, class: svg.Plain}
	switch where {
	case top:
		l.y, l.class = at.Y-gap-high+letter*0.75, svg.Plain+" middle"
	case bottom:
		l.y, l.class = at.Y+gap+letter*0.6, svg.Plain+" middle"
	case leftward:
		l.x, l.y, l.class = at.X-gap, at.Y-high/2+letter*0.75, svg.Plain+" end"
	case rightward:
		l.x, l.y = at.X+gap, at.Y-high/2+letter*0.75
	}
	l.box = svg.TextBox(l.x, l.y, l.class, lines[0])
	for i, line := range lines {
		b := svg.TextBox(l.x, l.y+letter*float64(i), l.class, line)
		l.box = svg.Box{Left: min(l.box.Left, b.Left), Top: l.box.Top, Right: max(l.box.Right, b.Right), Bottom: b.Bottom}
	}
	return l
}

// clashes counts what is in the way of a label: boxes, edges, other labels,
// arrows, its own among them.
func (g *diagram) clashes(b svg.Box, placed []label) (n int) {
	wider := svg.Box{Left: b.Left - 3, Top: b.Top - 2, Right: b.Right + 3, Bottom: b.Bottom + 2}
	for _, s := range g.states {
		if wider.Meets(g.box(s.name)) {
			n += 50
		}
	}
	frame := g.box(g.group.name)
	if wider.Meets(frame) && !wider.Within(frame) || wider.Meets(g.caption()) ||
		!b.Within(svg.Box{Left: 8, Top: 8, Right: g.width() - 8, Bottom: g.height() - 8}) {
		n += 50
	}
	for _, l := range placed {
		if wider.Meets(l.box) {
			n += 50
		}
	}
	for _, a := range g.arrows {
		c := g.curve(a)
		for t := 0.0; t <= 1; t += 1.0 / 128 {
			p := c.at(t)
			if wider.Meets(svg.Around(p, 5, 5)) {
				n++
			}
		}
	}
	return n
}
