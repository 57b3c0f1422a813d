package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/neap-go/neap/internal/svg"
)

const (
	pageWide = 760.0
	column0  = 110.0 // the middle of the first column
	between  = 270.0 // middles of columns
	boxWide  = 142.0
	boxHigh  = 62.0
	lineHigh = 18.0 // of a label
)

// diagram is the states of a record, and what moves it from one to another.
type diagram struct {
	title  string
	height float64
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
	frame   svg.Box
}

// arrow is a move, or several that lead the same way. One whose ends are the
// same changes the record and not the state.
type arrow struct {
	from, to string
	out, in  port
	label    label
	moves    moves
}

// label has its first line at a place. TestLabelsHaveRoom finds what is in its way.
type label struct {
	x, y  float64
	class string
	text  string // its lines, with "\n" between them
}

// The classes of labels, by what of their text is at x.
const (
	atStart  = svg.Plain
	atMiddle = svg.Plain + " middle"
	atEnd    = svg.Plain + " end"
)

// moves are the events that have an effect, each with the states in which it has
// this effect. An event stands for all whose names begin with it.
type moves map[string][]string

// note is told below, of moves for which an arrow would only be in the way.
type note struct {
	text  string
	moves moves
	to    string // "" is the state that it was in
}

// port is a place on a box's edge: 0 in the middle of a side, -1 and 1 at its ends.
type port struct {
	side svg.Point // the direction that it looks to
	at   float64
}

var (
	top       = svg.At(0, -1)
	rightward = svg.At(1, 0)
	bottom    = svg.At(0, 1)
	leftward  = svg.At(-1, 0)
)

func (p port) of(b svg.Box) svg.Point {
	w, h := (b.Right-b.Left)/2, (b.Bottom-b.Top)/2
	return svg.At(
		(b.Left+b.Right)/2+p.side.X*w+math.Abs(p.side.Y)*p.at*w,
		(b.Top+b.Bottom)/2+p.side.Y*h+math.Abs(p.side.X)*p.at*h,
	)
}

func (g *diagram) box(name string) svg.Box {
	for _, s := range g.states {
		if s.name == name {
			return svg.Around(svg.At(column0+between*float64(s.column), g.rows[s.row]), boxWide, boxHigh)
		}
	}
	return g.group.frame
}

// curve is an arrow's, a cubic one that leaves a box and reaches another at
// right angles.
func (g *diagram) curve(a arrow) [4]svg.Point {
	from, to := a.out.of(g.box(a.from)), a.in.of(g.box(a.to))
	if a.from == g.group.name {
		from.X = to.X
	}
	reach := min(max(math.Hypot(to.X-from.X, to.Y-from.Y)*0.4, 24), 64)
	if a.from == a.to {
		reach = 44
	}
	return [4]svg.Point{from, from.Toward(a.out.side, reach), to.Toward(a.in.side, reach), to}
}

// caption is where the group's name stands.
func (g *diagram) caption() svg.Point { return svg.At(g.group.frame.Left+12, g.group.frame.Top+20) }

func (g *diagram) drawing() string {
	d := svg.New(pageWide, g.height, g.title, g.description())
	d.Text(16, 32, svg.Title, g.title)
	d.Rect("group", g.group.frame, 8)
	d.Text(g.caption().X, g.caption().Y, svg.Plain, g.group.name)
	for _, s := range g.states {
		b := g.box(s.name)
		x := (b.Left + b.Right) / 2
		d.Rect("state", b, 8)
		d.Text(x, b.Top+26, svg.Name+" middle", s.name)
		d.Text(x, b.Top+46, svg.Small+" middle", s.told)
	}
	for _, a := range g.arrows {
		c := g.curve(a)
		d.Path("arrow", fmt.Sprintf("M%sC%s %s %s", c[0], c[1], c[2], c[3]))
		head(d, c[3], a.in.side)
		for n, line := range strings.Split(a.label.text, "\n") {
			d.Text(a.label.x, a.label.y+lineHigh*float64(n), a.label.class, line)
		}
	}
	for i, n := range g.notes {
		d.Text(16, g.height-16-20*float64(len(g.notes)-1-i), svg.Small, n.text)
	}
	return d.String()
}

// head is an arrow's, at a point of a box whose edge looks that way.
func head(d *svg.Drawing, at, edge svg.Point) {
	const long, half = 9, 4.5
	foot, along := at.Toward(edge, long), svg.At(edge.Y, edge.X)
	d.Path("head", fmt.Sprintf("M%sL%sL%sZ", at, foot.Toward(along, half), foot.Toward(along, -half)))
}

// description is the diagram in words.
func (g *diagram) description() string {
	var all []string
	for _, s := range g.states {
		all = append(all, fmt.Sprintf("%s: %s.", s.name, s.told))
	}
	for _, a := range g.arrows {
		text := strings.ReplaceAll(a.label.text, "\n", " ")
		if a.from == a.to {
			all = append(all, fmt.Sprintf("%q stays so by: %s.", a.from, text))
		} else {
			all = append(all, fmt.Sprintf("From %q to %q: %s.", a.from, a.to, text))
		}
	}
	for _, n := range g.notes {
		all = append(all, n.text)
	}
	return strings.Join(all, " ")
}
