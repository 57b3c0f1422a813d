package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/svg"
)

// shown is a limit and its picture.
type shown struct {
	file, name, rate string
	windows          bool // has windows that end for all
	policy           limit.Policy
}

var steady = fmt.Sprintf("%d a second", permits)

var limits = []shown{
	{"fixed-window.svg", "Fixed window", steady, true,
		limit.FixedWindow{Limit: permits, Window: window}},
	{"sliding-window.svg", "Sliding window of two counters", steady, true,
		limit.SlidingWindow{Limit: permits, Window: window}},
	{"sliding-log.svg", "Sliding log", steady, false,
		limit.SlidingLog{Limit: permits, Window: window}},
	{"token-bucket.svg", "Token bucket", fmt.Sprintf("%s, bursts of %d", steady, permits), false,
		limit.TokenBucket{Rate: permits, Per: window, Burst: permits}},
}

func limitPicture(l shown, seen *course) string {
	const requests, top, bottom, legend = 104.0, 134.0, 224.0, 272.0
	_, most := seen.busiest()
	told := fmt.Sprintf("%d of %d requests let through, up to %d within one second.", seen.let(), len(arrivals), most)
	c := newChart(112, 290, l.name+": "+l.rate, told+" "+timetable(seen))
	c.Text(16, 53, svg.Plain, told)
	for _, end := range seen.ends {
		if l.windows && end <= length {
			c.upright("edge", end, requests-14, bottom)
		}
	}
	c.busiest(seen, requests-16)
	c.requests(seen, requests)

	level := func(n int64) float64 { return bottom - (bottom-top)*float64(n)/permits }
	for n := range int64(permits + 1) {
		c.across("grid", level(n))
	}
	c.named((top+bottom)/2, "permits", "left")
	c.Text(c.left-5, level(permits)+4, svg.Small+" end", strconv.Itoa(permits))
	c.Text(c.left-5, level(0)+4, svg.Small+" end", "0")
	c.Path("area", steps(c, seen.left, level))
	c.axis(bottom, legend)
	if l.windows {
		x := c.left + 260
		c.Line("edge", svg.At(x, legend-4), svg.At(x+24, legend-4))
		c.Text(x+32, legend, svg.Small, "a window ends")
	}
	return c.String()
}

// steps is the outline of what has a level at each tick.
func steps(c chart, levels []int64, y func(int64) float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%s", svg.At(c.left, y(0)))
	last := int64(-1)
	for i, n := range levels {
		if n != last {
			fmt.Fprintf(&b, "H%sV%s", svg.Number(c.at(time.Duration(i)*tick)), svg.Number(y(n)))
		}
		last = n
	}
	fmt.Fprintf(&b, "H%sV%sZ", svg.Number(c.at(length)), svg.Number(y(0)))
	return b.String()
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
	c := newChart(196, bottom+62, title, strings.Join(told, " "))
	for t := time.Duration(0); t <= length; t += window {
		c.upright("grid", t, first-38, bottom)
	}
	for i, l := range limits {
		y := first + row*float64(i)
		name, _, _ := strings.Cut(l.name, " of ")
		c.Text(16, y-2, svg.Name, name)
		c.Text(16, y+16, svg.Small, fmt.Sprintf("%d of %d let through", seen[i].let(), len(arrivals)))
		c.busiest(seen[i], y-16)
		c.marks(seen[i], y, 4)
	}
	c.axis(bottom, bottom+46)
	return c.String()
}
