package limit_test

import (
	"time"

	"github.com/neap-go/neap/core/limit"
)

// calendar is a counter whose windows begin where the clocks of a place say.
type calendar struct {
	counter

	every limit.Period
	in    *time.Location

	from, till int64 // the window that was looked up last
}

func (c *calendar) become(p limit.Policy) {
	of := p.(limit.CalendarWindow)
	c.most, c.debt, c.every, c.in = of.Limit, of.MaxDebt, of.Every, of.Location
	if c.in == nil {
		c.in = time.UTC
	}
}

func (c *calendar) window(now int64) time.Duration {
	if c.every == limit.Month { // the next one has another length
		return 0
	}
	from, till := c.around(now)
	return time.Duration(till-from) * time.Microsecond
}

func (c *calendar) take(now, n int64) mark {
	_, till := c.around(now)
	return c.add(now, n, till)
}

func (c *calendar) owe(now, n int64) int64 {
	_, till := c.around(now)
	return c.charge(now, n, till)
}

// clocksMove is how finely the model looks for a change of what the clocks show. Zones change at
// quarters of an hour, in the years that the tests use.
const clocksMove = 15 * time.Minute

// around returns when the window of a time begins and when it ends. It looks at the clocks step
// by step, so it needs no rule for the days on which they are changed.
func (c *calendar) around(now int64) (from, till int64) {
	if c.from <= now && now < c.till {
		return c.from, c.till
	}
	start := time.UnixMicro(now).Truncate(clocksMove)
	for !c.begins(start) {
		start = start.Add(-clocksMove)
	}
	end := time.UnixMicro(now).Truncate(clocksMove).Add(clocksMove)
	for !c.begins(end) {
		end = end.Add(clocksMove)
	}
	c.from, c.till = start.UnixMicro(), end.UnixMicro()
	return c.from, c.till
}

// begins reports whether a window begins at that time.
func (c *calendar) begins(t time.Time) bool {
	before := t.Add(-clocksMove).In(c.in)
	t = t.In(c.in)
	if c.every == limit.Hour { // an hour that is shown twice is two windows
		shown := func(t time.Time) int { return t.Hour()*60 + t.Minute() }
		return t.Hour() != before.Hour() || shown(t) <= shown(before)
	}
	day := func(t time.Time) int { return t.Year()*10_000 + int(t.Month())*100 + t.Day() }
	if day(t) <= day(before) { // the clocks are set back over midnight: the day has begun already
		return false
	}
	for at := t.Add(-3 * time.Hour); at.Before(t); at = at.Add(clocksMove) {
		if day(at.In(c.in)) >= day(t) {
			return false
		}
	}
	switch c.every {
	case limit.Week:
		return t.Weekday() == time.Monday
	case limit.Month:
		return t.Day() == 1
	default:
		return true
	}
}

func (c *calendar) clone() algorithm { other := *c; return &other }
