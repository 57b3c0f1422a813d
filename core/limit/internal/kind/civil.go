package kind

import "time"

// Period is a unit of the calendar, by the clocks of a place.
type Period int

// The periods. A Week begins on Monday.
const (
	Hour Period = iota + 1
	Day
	Week
	Month
)

// civil finds the instants at which the periods of a place begin.
type civil struct {
	every Period
	in    *time.Location
}

// around returns four starts in a row. The second is the last start that is not after t.
func (c civil) around(t time.Time) (starts [4]time.Time) {
	starts[1] = c.last(t)
	starts[0] = c.last(starts[1].Add(-time.Second))
	starts[2] = c.next(starts[1])
	starts[3] = c.next(starts[2])
	return starts
}

// last returns the last start that is not after t.
func (c civil) last(t time.Time) time.Time {
	start := c.next(t.Add(-25 * time.Hour)) // for hours; no day is longer than 25
	if c.every != Hour {
		year, month, day := c.date(t, -1)
		start = c.first(year, month, day)
	}
	for next := c.next(start); !next.After(t); next = c.next(start) {
		start = next
	}
	return start
}

// next returns the first start after t.
func (c civil) next(t time.Time) time.Time {
	if c.every == Hour {
		return c.nextHour(t)
	}
	for n := 1; ; n++ {
		year, month, day := c.date(t, n)
		if start := c.first(year, month, day); start.After(t) { // false for a day that the place has skipped
			return start
		}
	}
}

// nextHour returns the next time at which the clocks show a full hour or are changed.
func (c civil) nextHour(t time.Time) time.Time {
	const hour = int64(time.Hour / time.Second)
	for {
		offset, until := c.offset(t)
		shown := t.Unix() + int64(offset/time.Second)
		start := time.Unix(t.Unix()+hour-(shown%hour+hour)%hour, 0)
		if until.IsZero() || !start.After(until) {
			return start
		}
		if offset, _ := c.offset(until); (until.Unix()+int64(offset/time.Second))%hour == 0 {
			return until
		}
		t = until
	}
}

// offset returns how far the clocks are ahead of UTC, and a time until which this holds.
// A zero time means for ever.
func (c civil) offset(t time.Time) (offset time.Duration, until time.Time) {
	t = t.In(c.in)
	_, seconds := t.Zone()
	if _, until = t.ZoneBounds(); !until.IsZero() && !until.After(t) {
		until = t.Add(time.Hour) // on the last day of a leap year, Go may return its beginning
	}
	return time.Duration(seconds) * time.Second, until
}

// date returns the first day of the period of t, or of the period that is n later.
func (c civil) date(t time.Time, n int) (year int, month time.Month, day int) {
	t = t.In(c.in)
	year, month, day = t.Date()
	switch c.every {
	case Month:
		return year, month + time.Month(n), 1
	case Week:
		return year, month, day - (int(t.Weekday())+6)%7 + 7*n
	}
	return year, month, day + n
}

// first returns the first instant at which the clocks show a day. If they skip the day,
// it is the first instant of the next.
func (c civil) first(year int, month time.Month, day int) time.Time {
	shown := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	t := shown.Add(-36 * time.Hour) // no clock is that far from UTC
	for {
		offset, until := c.offset(t)
		start := shown.Add(-offset)
		if start.Before(t) {
			start = t
		}
		if until.IsZero() || start.Before(until) {
			return start
		}
		t = until
	}
}
