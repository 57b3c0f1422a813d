package limit_test

import (
	"slices"
	"sort"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// slidingLog has the time of every permit.
type slidingLog struct {
	most, length int64

	entries []int64
}

func (l *slidingLog) become(p limit.Policy) {
	of := p.(limit.SlidingLog)
	l.most, l.length = of.Limit, of.Window.Microseconds()
}

func (*slidingLog) tick() int64 { return 1 }

func (l *slidingLog) limit() int64 { return l.most }

func (l *slidingLog) window(int64) time.Duration { return time.Duration(l.length) * time.Microsecond }

// used is how many permits are in the window that ends at that time.
func (l *slidingLog) used(now int64) int64 {
	gone := sort.Search(len(l.entries), func(i int) bool { return l.entries[i]+l.length > now })
	return int64(len(l.entries) - gone)
}

func (l *slidingLog) free(now int64) int64 { return l.most - l.used(now) }

func (l *slidingLog) idle(now int64) bool { return l.used(now) == 0 }

func (l *slidingLog) take(now, n int64) mark {
	l.entries = slices.Clone(l.entries[int64(len(l.entries))-l.used(now):])
	for range n {
		l.entries = append(l.entries, now)
	}
	return now
}

func (l *slidingLog) giveBack(now int64, of mark, n int64) (given bool) {
	at, found := slices.BinarySearch(l.entries, of.(int64))
	if !found || of.(int64)+l.length <= now {
		return false
	}
	for ; n > 0 && at < len(l.entries) && l.entries[at] == of.(int64); n-- {
		l.entries = slices.Delete(l.entries, at, at+1)
	}
	return true
}

// owe is never asked for: a log cannot be settled.
func (*slidingLog) owe(int64, int64) int64 { panic("a log was settled") }

func (l *slidingLog) clone() algorithm {
	c := *l
	c.entries = slices.Clone(l.entries)
	return &c
}

// forgets has all permits but the oldest leave with the youngest: Redis does not say when each of
// them leaves. It speaks of the newest, as many as the limit has.
func (l *slidingLog) forgets(now int64) {
	l.entries = l.entries[int64(len(l.entries))-min(l.used(now), l.most):]
	for i := 1; i < len(l.entries); i++ {
		l.entries[i] = l.entries[len(l.entries)-1]
	}
}
