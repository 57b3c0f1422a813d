package kind

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxLog bounds what one subject may store in Redis, and what one request may write, to
// about a megabyte.
const maxLog = 100_000

// log stores the microsecond of every permit.
type log struct {
	base
	length int64 // in microseconds
}

// NewLog returns a sliding log, or an error for each fault.
func NewLog(limit int64, length time.Duration) (Algorithm, error) {
	err := errors.Join(
		checkPositive("Limit", limit),
		checkWhole("Window", length, time.Microsecond, "microseconds"),
	)
	if limit > maxLog {
		err = errors.Join(err, fmt.Errorf(
			"Limit is %d: a log keeps every permit and takes at most %d; use a SlidingWindow", limit, maxLog))
	}
	if err != nil {
		return nil, err
	}
	micros := length.Microseconds()
	if !Fits(micros, 8) {
		return nil, inexact("Limit and Window", "use a Window below 35 years")
	}
	return &log{
		base: base{Facts{
			Kind: "log", Limit: limit, Unit: 1, Largest: limit, Width: 4, told: 2, Packs: Fits(limit+1, micros+1),
			Entries: true, window: length,
		}},
		length: micros,
	}, nil
}

// Numbers has the time to live of a log in milliseconds: two windows, and one millisecond
// more because the key's clock may be up to a millisecond behind TIME.
func (l *log) Numbers() []any {
	return []any{Integer(l.Limit), Integer(l.length), Integer(CeilDiv(2*l.length, 1000) + 1)}
}

// A reading is {used, next, retry, reset}, the times in microseconds, as limit_log.lua reports
// them. After a grant the third number is the mark of the granted permits: the microsecond
// itself.

func (l *log) UnpackText(text string) (Reading, bool) {
	packed, mark, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(packed, 10, 64)
	at, fault := strconv.ParseInt(mark, 10, 64)
	ok := err == nil && fault == nil && n >= 0
	return Reading{N: [4]int64{n % (l.Limit + 1), n / (l.Limit + 1), at, l.length}}, ok
}

// Plausible reports whether not more is used than the limit.
func (l *log) Plausible(r Reading) bool { return r.N[0] >= 0 && r.N[0] <= l.Limit }

func (l *log) Advance(c *Cell, now int64) {
	c.now = now
	gone := 0
	for gone < len(c.log) && c.log[gone]+l.length <= now {
		gone++
	}
	c.log = c.log[gone:]
	c.fit()
}

// fit releases memory that the log no longer needs: a state with few entries must not use
// as much memory as it once did.
func (c *Cell) fit() {
	if c.room > 2*len(c.log)+8 {
		c.log = slices.Clone(c.log)
		c.room = cap(c.log)
	}
}

// Entries returns how many entries the cell of a log has.
func (c *Cell) Entries() int { return len(c.log) }

func (*log) Room(c *Cell, largest int64) int64 { return largest - int64(len(c.log)) }

func (*log) Add(c *Cell, units int64) {
	for range units {
		c.log = append(c.log, c.now)
	}
	c.room = max(c.room, cap(c.log))
}

// Refund removes up to back entries with the mark. Entries of one microsecond are alike,
// so any of them will do.
func (*log) Refund(c *Cell, mark, _, back int64, _ Moment) bool {
	first, found := slices.BinarySearch(c.log, mark)
	if !found {
		return false
	}
	last := first
	for last < len(c.log) && c.log[last] == mark && int64(last-first) < back {
		last++
	}
	c.log = slices.Delete(c.log, first, last)
	c.fit()
	return true
}

func (l *log) Read(c *Cell, cost int64) Reading {
	counted := c.log[max(int64(len(c.log))-l.Limit, 0):] // there are more entries if another process has a larger limit
	used := int64(len(counted))
	if used == 0 {
		return Reading{}
	}
	leaves := func(i int64) int64 { return counted[i] + l.length - c.now }
	r := Reading{N: [4]int64{used, leaves(0), 0, leaves(used - 1)}}
	if over := used + cost - l.Limit; over > 0 && cost > 0 {
		r.N[2] = leaves(over - 1)
	}
	return r
}

// Resume assumes that all permits but the oldest leave with the youngest, because a
// reading does not say when each of them leaves.
func (l *log) Resume(c *Cell, r Reading, at int64) {
	used := r.N[0]
	if used == 0 {
		return
	}
	c.log = make([]int64, used)
	for i := range c.log {
		c.log[i] = at + r.N[3] - l.length
	}
	c.log[0] = at + r.N[1] - l.length
	c.room = cap(c.log)
}

// Age does not change the count, because a reading does not say when each permit leaves.
func (*log) Age(r Reading, passed int64) Reading {
	for i := 1; i < len(r.N); i++ {
		r.N[i] = max(r.N[i]-passed, 0)
	}
	return r
}

// foresee returns what the log would answer to a cost, some microseconds after a reading. If
// the reading does not say when the cost would be granted, the time is when the next permit is
// free.
func (l *log) foresee(was Reading, passed, cost int64) Reading {
	aged := l.Age(was, passed)
	if !was.Denied {
		aged.N[2] = 0 // after a grant, this number is the mark of its entries
		if aged.N[0]+cost > l.Limit {
			aged.N[2] = aged.N[1]
		}
	}
	aged.Denied = aged.N[2] > 0 || was.Denied && passed == 0
	return aged
}

// atLeast corrects an aged reading of a denial from which a permit has left since. Another
// may have left too, or may leave before the reading says.
func (*log) atLeast(r Reading) Reading {
	switch used, next, retry, reset := r.N[0], r.N[1], r.N[2], r.N[3]; {
	case used == 0 || next > 0:
	case reset == 0:
		r.N[0] = 0
	default:
		r.N[0], r.N[1] = used-1, cmp.Or(retry, reset)
	}
	return r
}

func (l *log) Figures(r Reading, _ int64) Figures {
	f := Figures{
		Allowed:    !r.Denied,
		Remaining:  max(l.Limit-r.N[0], 0),
		Window:     l.window,
		NextAfter:  time.Duration(r.N[1]) * time.Microsecond,
		ResetAfter: time.Duration(r.N[3]) * time.Microsecond,
	}
	if r.Denied {
		f.RetryAfter = time.Duration(r.N[2]) * time.Microsecond
	}
	return f
}
