package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/neap-go/neap/internal/svg"
)

const (
	between = 270.0 // middles of columns
	boxWide = 142.0
	boxHigh = 62.0
)

// diagram is the states of a record, and what moves it from one to another.
type diagram struct {
	title  string
	rows   []float64 // their middles
	states []state
	group  group
	arrows []arrow
	notes  []note
}

// state is a box on a grid.
type state struct {
	name        string
	told        string
	column, row int
}

// group is a frame around states that a move may leave alike.
type group struct {
	name    string
	members []string
	foot    float64 // room below them
}

// arrow is a move, or several that lead the same way. One whose ends are the
// same changes the record and not the state.
type arrow struct {
	from, to string
	out, in  port
	label    []string
	moves    []move
}

// move is an event that has an effect in a state. An event stands for all whose
// names begin with it.
type move struct{ state, event string }

// note is told below, of moves for which an arrow would only be in the way.
type note struct {
	text  string
	moves []move
	to    string // "" is the state that it was in
}

// on has an event in several states.
func on(event string, states ...string) (all []move) {
	for _, s := range states {
		all = append(all, move{s, event})
	}
	return all
}

func either(moves ...[]move) []move { return slices.Concat(moves...) }

// port is a place on a box's edge: 0 in the middle of a side, -1 and 1 at its ends.
type port struct {
	side side
	at   float64
}

type side int

const (
	top side = iota
	rightward
	bottom
	leftward
)

var outward = map[side]svg.Point{top: {Y: -1}, rightward: {X: 1}, bottom: {Y: 1}, leftward: {X: -1}}

func (p port) of(b svg.Box) svg.Point {
	middle, out := svg.Point{X: (b.Left + b.Right) / 2, Y: (b.Top + b.Bottom) / 2}, outward[p.side]
	w, h := (b.Right-b.Left)/2, (b.Bottom-b.Top)/2
	return svg.Point{
		X: middle.X + out.X*w + math.Abs(out.Y)*p.at*w,
		Y: middle.Y + out.Y*h + math.Abs(out.X)*p.at*h,
	}
}

// curve is a cubic one, that leaves a box and reaches another at right angles.
type curve [4]svg.Point

func (c curve) at(t float64) svg.Point {
	a, b, e, f := (1-t)*(1-t)*(1-t), 3*t*(1-t)*(1-t), 3*t*t*(1-t), t*t*t
	return svg.Point{
		X: a*c[0].X + b*c[1].X + e*c[2].X + f*c[3].X,
		Y: a*c[0].Y + b*c[1].Y + e*c[2].Y + f*c[3].Y,
	}
}

func (g *diagram) box(name string) svg.Box {
	for _, s := range g.states {
		if s.name == name {
			return svg.Around(svg.Point{X: 20 + between/2 - 45 + between*float64(s.column), Y: g.rows[s.row]}, boxWide, boxHigh)
		}
	}
	b := svg.Box{Left: math.Inf(1), Top: math.Inf(1)}
	for _, m := range g.group.members {
		c := g.box(m)
		b = svg.Box{Left: min(b.Left, c.Left), Top: min(b.Top, c.Top), Right: max(b.Right, c.Right), Bottom: max(b.Bottom, c.Bottom)}
	}
	return svg.Box{Left: 16, Top: b.Top - 42, Right: g.width() - 16, Bottom: b.Bottom + g.group.foot}
}

func (g *diagram) width() float64 { return 2*20 + 2*(between/2-45) + 2*between }

func (g *diagram) height() float64 {
	return g.rows[len(g.rows)-1] + boxHigh/2 + 68 + 20*float64(len(g.notes))
}

func (g *diagram) curve(a arrow) curve {
	from, to := a.out.of(g.box(a.from)), a.in.of(g.box(a.to))
	if a.from == g.group.name {
		from.X = to.X
	}
	reach := min(max(math.Hypot(to.X-from.X, to.Y-from.Y)*0.4, 24), 64)
	if a.from == a.to {
		reach = 44
	}
	o, i := outward[a.out.side], outward[a.in.side]
	return curve{
		from, {X: from.X + o.X*reach, Y: from.Y + o.Y*reach}, {X: to.X + i.X*reach, Y: to.Y + i.Y*reach}, to,
	}
}

// caption is where the group's name stands.
func (g *diagram) caption() svg.Box {
	x, y := g.captionAt()
	return svg.TextBox(x, y, svg.Plain, g.group.name)
}

func (g *diagram) captionAt() (x, y float64) {
	b := g.box(g.group.name)
	return b.Left + 12, b.Top + 20
}

func (g *diagram) drawing() string {
	d := svg.New(g.width(), g.height(), g.title, g.description())
	d.Text(16, 32, svg.Title, g.title)
	d.Rect("group", g.box(g.group.name), 8)
	x, y := g.captionAt()
	d.Text(x, y, svg.Plain, g.group.name)
	for _, s := range g.states {
		b := g.box(s.name)
		middle := (b.Left + b.Right) / 2
		d.Rect("state", b, 8)
		d.Text(middle, b.Top+26, svg.Name+" middle", s.name)
		d.Text(middle, b.Top+46, svg.Small+" middle", s.told)
	}
	labels, _ := g.labels()
	for i, a := range g.arrows {
		c := g.curve(a)
		var points [4]string
		for n, p := range c {
			points[n] = svg.Number(p.X) + " " + svg.Number(p.Y)
		}
		d.Path("arrow", "M"+points[0]+"C"+strings.Join(points[1:], " "))
		head(d, c[3], outward[a.in.side])
		for n, line := range a.label {
			d.Text(labels[i].x, labels[i].y+letter*float64(n), labels[i].class, line)
		}
	}
	for i, n := range g.notes {
		d.Text(16, g.height()-16-20*float64(len(g.notes)-1-i), svg.Small, n.text)
	}
	return d.String()
}

// head is an arrow's, at a point of a box whose edge looks that way.
func head(d *svg.Drawing, at, edge svg.Point) {
	const long, half = 9, 4.5
	x, y := at.X+edge.X*long, at.Y+edge.Y*long
	d.Path("head", fmt.Sprintf("M%s %sL%s %sL%s %sZ", svg.Number(at.X), svg.Number(at.Y),
		svg.Number(x+edge.Y*half), svg.Number(y+edge.X*half), svg.Number(x-edge.Y*half), svg.Number(y-edge.X*half)))
}

// description is the diagram in words.
func (g *diagram) description() string {
	all := make([]string, 0, len(g.states)+len(g.arrows)+len(g.notes))
	for _, s := range g.states {
		all = append(all, fmt.Sprintf("%s: %s.", s.name, s.told))
	}
	for _, a := range g.arrows {
		text := fmt.Sprintf("From %q to %q: %s.", a.from, a.to, strings.Join(a.label, " "))
		if a.from == a.to {
			text = fmt.Sprintf("%q stays so by: %s.", a.from, strings.Join(a.label, " "))
		}
		all = append(all, text)
	}
	for _, n := range g.notes {
		all = append(all, n.text)
	}
	return strings.Join(all, " ")
}
