package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/svg"
)

const (
	wide  = 720.0
	right = 704.0
)

// shown is a limit and its picture.
type shown struct {
	file, name, rate string
	windows          bool // has windows that end for all
	policy           limit.Policy
}

var steady = fmt.Sprintf("%d a second", permits)

var limits = []shown{
	{"fixed-window.svg", "Fixed window", steady, true, limit.FixedWindow{Limit: permits, Window: window}},
	{"sliding-window.svg", "Sliding window of two counters", steady, true, limit.SlidingWindow{Limit: permits, Window: window}},
	{"sliding-log.svg", "Sliding log", steady, false, limit.SlidingLog{Limit: permits, Window: window}},
	{"token-bucket.svg", "Token bucket", fmt.Sprintf("%s, bursts of %d", steady, permits), false, limit.TokenBucket{Rate: permits, Per: window, Burst: permits}},
}

// scale is where a time stands in a drawing.
type scale struct{ left float64 }

func (s scale) at(t time.Duration) float64 {
	return s.left + (right-8-s.left)*float64(t)/float64(length)
}

func limitPicture(l shown, c *course) string {
	const marks, top, bottom = 104.0, 134.0, 224.0
	_, most := c.busiest()
	told := fmt.Sprintf("%d of %d requests let through, up to %d within one second.", c.let(), len(arrivals), most)
	d := svg.New(wide, 290, l.name+": "+l.rate, told+" "+timetable(c))
	s := scale{112}
	d.Text(16, 30, svg.Title, l.name+": "+l.rate)
	d.Text(16, 53, svg.Plain, told)
	if l.windows {
		for _, end := range c.ends {
			if end > length {
				continue
			}
			d.Line("edge", svg.Point{X: s.at(end), Y: marks - 14}, svg.Point{X: s.at(end), Y: bottom})
		}
	}
	busiest(d, s, c, marks-16)
	d.Text(s.left-16, marks+5, svg.Plain+" end", "requests")
	mark(d, s, c, marks, 4.2)

	level := func(n int64) float64 { return bottom - (bottom-top)*float64(n)/permits }
	for n := range int64(permits + 1) {
		d.Line("grid", svg.Point{X: s.left, Y: level(n)}, svg.Point{X: s.at(length), Y: level(n)})
	}
	d.Text(s.left-16, (top+bottom)/2-3, svg.Plain+" end", "permits")
	d.Text(s.left-16, (top+bottom)/2+14, svg.Plain+" end", "left")
	d.Text(s.left-5, level(permits)+4, svg.Small+" end", strconv.Itoa(permits))
	d.Text(s.left-5, level(0)+4, svg.Small+" end", "0")
	d.Path("area", steps(s, c.left, level))
	seconds(d, s, bottom)
	legend(d, s.left, 272)
	if l.windows {
		x := s.left + 260
		d.Line("edge", svg.Point{X: x, Y: 268}, svg.Point{X: x + 24, Y: 268})
		d.Text(x+32, 272, svg.Small, "a window ends")
	}
	return d.String()
}

// limitsPicture has all of them below one another.
func limitsPicture(seen []*course) string {
	const row, first = 62.0, 100.0
	title := fmt.Sprintf("The same %d requests under four limits of %d a second", len(arrivals), permits)
	told := make([]string, len(limits))
	for i, l := range limits {
		_, most := seen[i].busiest()
		told[i] = fmt.Sprintf("%s: %d let through, up to %d within one second.", l.name, seen[i].let(), most)
	}
	bottom := first + row*float64(len(limits)) - 22
	d := svg.New(wide, bottom+62, title, strings.Join(told, " "))
	d.Text(16, 30, svg.Title, title)
	s := scale{196}
	for t := time.Duration(0); t <= length; t += window {
		d.Line("grid", svg.Point{X: s.at(t), Y: first - 38}, svg.Point{X: s.at(t), Y: bottom})
	}
	for i, l := range limits {
		y := first + row*float64(i)
		name, _, _ := strings.Cut(l.name, " of ")
		d.Text(16, y-2, svg.Name, name)
		d.Text(16, y+16, svg.Small, fmt.Sprintf("%d of %d let through", seen[i].let(), len(arrivals)))
		busiest(d, s, seen[i], y-16)
		mark(d, s, seen[i], y, 4)
	}
	seconds(d, s, bottom)
	legend(d, s.left, bottom+46)
	return d.String()
}

// busiest draws a bracket over a window's length, with how many it has.
func busiest(d *svg.Drawing, s scale, c *course, y float64) {
	from, most := c.busiest()
	left, end := s.at(from)-4, s.at(from+window)-4
	d.Path("axis", fmt.Sprintf("M%s %sv-5H%sv5", svg.Number(left), svg.Number(y+2), svg.Number(end)))
	d.Text((left+end)/2, y-8, svg.Small+" middle", fmt.Sprintf("%d within 1 s", most))
}

// mark draws each request: a dot that was let through, a cross that was not.
func mark(d *svg.Drawing, s scale, c *course, y, radius float64) {
	for i, yes := range c.admitted {
		request(d, svg.Point{X: s.at(arrivals[i]), Y: y}, radius, yes)
	}
}

func request(d *svg.Drawing, at svg.Point, radius float64, yes bool) {
	if yes {
		d.Dot("yes", at, radius)
		return
	}
	arm := radius * 0.85
	x, y, across := svg.Number(at.X-arm), svg.Number(at.Y-arm), svg.Number(2*arm)
	d.Path("no", fmt.Sprintf("M%[1]s %[2]sl%[3]s %[3]sm0 -%[3]sl-%[3]s %[3]s", x, y, across))
}

func legend(d *svg.Drawing, x, y float64) {
	request(d, svg.Point{X: x + 5, Y: y - 4}, 4.2, true)
	d.Text(x+16, y, svg.Small, "let through")
	request(d, svg.Point{X: x + 135, Y: y - 4}, 4.2, false)
	d.Text(x+146, y, svg.Small, "refused")
}

// seconds draws the axis of time.
func seconds(d *svg.Drawing, s scale, y float64) {
	d.Line("axis", svg.Point{X: s.left, Y: y}, svg.Point{X: s.at(length), Y: y})
	for t := time.Duration(0); t <= length; t += time.Second {
		d.Line("axis", svg.Point{X: s.at(t), Y: y}, svg.Point{X: s.at(t), Y: y + 5})
		d.Text(s.at(t), y+19, svg.Small+" middle", fmt.Sprintf("%d s", t/time.Second))
	}
}

// steps is the outline of what has a level at each tick.
func steps(s scale, levels []int64, y func(int64) float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%s %s", svg.Number(s.left), svg.Number(y(0)))
	last := int64(-1)
	for i, n := range levels {
		if n != last {
			fmt.Fprintf(&b, "H%sV%s", svg.Number(s.at(time.Duration(i)*tick)), svg.Number(y(n)))
		}
		last = n
	}
	fmt.Fprintf(&b, "H%sV%sZ", svg.Number(s.at(length)), svg.Number(y(0)))
	return b.String()
}

// timetable tells who hears the picture when what was let through.
func timetable(c *course) string {
	var let, refused []string
	for i, yes := range c.admitted {
		at := fmt.Sprintf("%.2f", arrivals[i].Seconds())
		if yes {
			let = append(let, at)
		} else {
			refused = append(refused, at)
		}
	}
	return fmt.Sprintf("Let through at second %s; refused at %s.", strings.Join(let, ", "), strings.Join(refused, ", "))
}
