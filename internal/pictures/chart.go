package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/neap-go/neap/internal/svg"
)

const (
	wide  = 720.0
	right = 704.0
	dot   = 4.2 // the radius of a request
)

// chart is a drawing of the traffic, with time from left to right.
type chart struct {
	*svg.Drawing

	left float64 // where time begins
}

func newChart(left, height float64, title, description string) chart {
	c := chart{svg.New(wide, height, title, description), left}
	c.Text(16, 30, svg.Title, title)
	return c
}

// at is where a time stands.
func (c chart) at(t time.Duration) float64 {
	return c.left + (right-8-c.left)*float64(t)/float64(length)
}

// upright draws a line at a time.
func (c chart) upright(class string, t time.Duration, top, bottom float64) {
	c.Line(class, svg.At(c.at(t), top), svg.At(c.at(t), bottom))
}

// across draws a line from the first moment to the last.
func (c chart) across(class string, y float64) {
	c.Line(class, svg.At(c.left, y), svg.At(c.at(length), y))
}

// requests names a row and draws the requests in it.
func (c chart) requests(seen *course, y float64) {
	c.Text(c.left-16, y+5, svg.Plain+" end", "requests")
	c.marks(seen, y, dot)
}

// marks draws each request: a dot that was let through, a cross that was not.
func (c chart) marks(seen *course, y, radius float64) {
	for i, yes := range seen.admitted {
		c.mark(svg.At(c.at(arrivals[i]), y), radius, yes)
	}
}

func (c chart) mark(at svg.Point, radius float64, yes bool) {
	if yes {
		c.Dot("yes", at, radius)
		return
	}
	arm := radius * 0.85
	c.Path("no", fmt.Sprintf("M%sl%[2]s %[2]sm0 -%[2]sl-%[2]s %[2]s", svg.At(at.X-arm, at.Y-arm), svg.Number(2*arm)))
}

// named writes two lines beside the middle of what they name.
func (c chart) named(middle float64, first, second string) {
	c.Text(c.left-16, middle-3, svg.Plain+" end", first)
	c.Text(c.left-16, middle+14, svg.Plain+" end", second)
}

// busiest draws a bracket over a window's length, with how many it has.
func (c chart) busiest(seen *course, y float64) {
	from, most := seen.busiest()
	left, end := c.at(from)-4, c.at(from+window)-4
	c.Path("axis", fmt.Sprintf("M%sv-5H%sv5", svg.At(left, y+2), svg.Number(end)))
	c.Text((left+end)/2, y-8, svg.Small+" middle", fmt.Sprintf("%d within 1 s", most))
}

// axis draws the axis of time, and the legend below it.
func (c chart) axis(y, legend float64) {
	c.across("axis", y)
	for t := time.Duration(0); t <= length; t += time.Second {
		c.upright("axis", t, y, y+5)
		c.Text(c.at(t), y+19, svg.Small+" middle", fmt.Sprintf("%d s", t/time.Second))
	}
	c.mark(svg.At(c.left+5, legend-4), dot, true)
	c.Text(c.left+16, legend, svg.Small, "let through")
	c.mark(svg.At(c.left+135, legend-4), dot, false)
	c.Text(c.left+146, legend, svg.Small, "refused")
}

// timetable tells a reader who cannot see the picture when what was let through.
func timetable(seen *course) string {
	at := map[bool][]string{}
	for i, yes := range seen.admitted {
		at[yes] = append(at[yes], fmt.Sprintf("%.2f", arrivals[i].Seconds()))
	}
	return fmt.Sprintf("Let through at second %s; refused at %s.",
		strings.Join(at[true], ", "), strings.Join(at[false], ", "))
}
