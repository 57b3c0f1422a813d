package limit

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

// slidingLog stores the microsecond of every permit. A reading is {used, next, retry,
// reset}, the times in microseconds, as limit_log.lua reports them. After a grant the
// third number is the mark of the granted permits: the microsecond itself.
type slidingLog struct {
	identity
	length int64 // in microseconds
	packed bool
}

func (p SlidingLog) compile() (rule, error) {
	err := errors.Join(
		checkPositive("Limit", p.Limit),
		checkWhole("Window", p.Window, time.Microsecond, "microseconds"),
	)
	if p.Limit > maxLog {
		err = errors.Join(err, fmt.Errorf(
			"Limit is %d: a log keeps every permit and takes at most %d; use a SlidingWindow", p.Limit, maxLog))
	}
	if err != nil {
		return nil, err
	}
	length := p.Window.Microseconds()
	if !fits(length, 8) {
		return nil, errInexact("Limit and Window", "use a Window below 35 years")
	}
	return &slidingLog{
		identity: newIdentity(p, p.Limit, 1),
		length:   length,
		packed:   fits(p.Limit+1, length+1),
	}, nil
}

// longest is the time to live of a log in milliseconds: two windows, and one millisecond
// more because the key's clock may be up to a millisecond behind TIME.
func (l *slidingLog) longest() any { return integer(ceilDiv(2*l.length, 1000) + 1) }

func (l *slidingLog) packs() bool { return l.packed }

func (*slidingLog) kind() string { return "log" }

func (l *slidingLog) numbers() []any {
	return []any{integer(l.limit), integer(l.length), l.longest()}
}

func (l *slidingLog) told(n []int64, back int64, charged bool) reading {
	r := reading{n: [4]int64{n[0] - back, n[1], n[2], n[3]}}
	if charged {
		r.n[2] = n[4] // the mark
	}
	return r
}

func (l *slidingLog) unpackText(text string) (reading, bool) {
	packed, mark, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(packed, 10, 64)
	at, fault := strconv.ParseInt(mark, 10, 64)
	ok := err == nil && fault == nil && n >= 0
	return reading{n: [4]int64{n % (l.limit + 1), n / (l.limit + 1), at, l.length}}, ok
}

func (l *slidingLog) advance(c *cell, now int64) {
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
func (c *cell) fit() {
	if c.room > 2*len(c.log)+8 {
		c.log = slices.Clone(c.log)
		c.room = cap(c.log)
	}
}

func (l *slidingLog) admits(c *cell, cost int64) bool { return int64(len(c.log))+cost <= l.limit }

func (l *slidingLog) charge(c *cell, cost int64) reading {
	for range cost {
		c.log = append(c.log, c.now)
	}
	c.room = max(c.room, cap(c.log))
	r := l.read(c, 0)
	r.n[2] = c.now
	return r
}

func (l *slidingLog) term(r reading) int64 { return r.n[2] }

// refund removes up to back entries with the mark. Entries of one microsecond are alike,
// so any of them will do.
func (l *slidingLog) refund(c *cell, mark, _, back int64, _ moment) bool {
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

// owe charges nothing. A log promises never to hold more than its limit, so it is not
// settled.
func (*slidingLog) owe(_ *cell, permits int64) (forgiven int64) { return permits }

func (l *slidingLog) read(c *cell, cost int64) reading {
	counted := c.log[max(int64(len(c.log))-l.limit, 0):] // there are more entries if another process has a larger limit
	used := int64(len(counted))
	if used == 0 {
		return reading{}
	}
	leaves := func(i int64) int64 { return counted[i] + l.length - c.now }
	r := reading{n: [4]int64{used, leaves(0), 0, leaves(used - 1)}}
	if over := used + cost - l.limit; over > 0 && cost > 0 {
		r.n[2] = leaves(over - 1)
	}
	return r
}

// age does not change the count, because a reading does not say when each permit leaves.
func (l *slidingLog) age(r reading, passed int64) reading {
	for i := 1; i < len(r.n); i++ {
		r.n[i] = max(r.n[i]-passed, 0)
	}
	return r
}

// atLeast corrects an aged reading of a denial from which a permit has left since. Another
// may have left too, or may leave before the reading says.
func (l *slidingLog) atLeast(r reading) reading {
	switch used, next, retry, reset := r.n[0], r.n[1], r.n[2], r.n[3]; {
	case used == 0 || next > 0:
	case reset == 0:
		r.n[0] = 0
	default:
		r.n[0], r.n[1] = used-1, cmp.Or(retry, reset)
	}
	return r
}

func (*slidingLog) lasts(_ reading) (left int64, ends bool) { return 0, false }

func (l *slidingLog) state(r reading, cost int64) State {
	used := r.n[0]
	s := State{
		Policy:     l.name,
		Allowed:    !r.denied,
		Limit:      l.limit,
		Remaining:  max(l.limit-used, 0),
		Window:     time.Duration(l.length) * time.Microsecond,
		NextAfter:  time.Duration(r.n[1]) * time.Microsecond,
		ResetAfter: time.Duration(r.n[3]) * time.Microsecond,
	}
	if r.denied {
		s.RetryAfter = time.Duration(r.n[2]) * time.Microsecond
	}
	return s
}
