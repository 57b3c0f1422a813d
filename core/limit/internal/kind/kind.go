// Package kind decides about permits: each algorithm in Go, in the same integers as its script,
// and what a limiter with several policies makes of it. A limiter without Redis decides by it,
// and the tests compare the scripts with it.
//
// The package knows neither Redis nor a limiter. Times are in microseconds where nothing else is
// said.
package kind

import (
	"strconv"
	"time"
)

// Algorithm is one way to count permits, with its numbers. A state is counted in units:
// [Facts.Unit] of them are a permit.
type Algorithm interface {
	// Numbers returns its numbers as the scripts take them: six at most.
	Numbers() []any
	// Advance brings a cell up to now.
	Advance(c *Cell, now int64)
	// Room returns how many units an advanced cell has room for until its state is that large.
	Room(c *Cell, largest int64) int64
	// Add charges an advanced cell.
	Add(c *Cell, units int64)
	// Refund gives back to an advanced cell up to back permits of a cost that was taken at
	// that moment, if they are still left. It reports whether it gave any back.
	Refund(c *Cell, told, cost, back int64, at Moment) bool
	// Read returns what the script would report about an advanced cell to a request of that
	// cost.
	Read(c *Cell, cost int64) Reading
	// Resume fills an empty cell from a reading that was made at that time. It leaves no more
	// permits than were left.
	Resume(c *Cell, r Reading, at int64)
	// Age returns a reading after some microseconds without a request.
	Age(r Reading, passed int64) Reading
	// Figures returns what a reading means for a request of that cost.
	Figures(r Reading, cost int64) Figures
	// Told returns the number that a script told with a grant, by which what is left of it is found
	// later.
	Told(r Reading) int64
	// Plausible reports whether the other methods can use a reading.
	Plausible(r Reading) bool
	// Unpack reads a reading that is packed into one number, and UnpackText one that is packed
	// into a string.
	Unpack(n int64) (Reading, bool)
	UnpackText(text string) (Reading, bool)
	// Beyond is about a request that asks for over permits more than the limit, while remaining
	// are left. It returns how many nanoseconds longer such a request waits, at least, than one
	// of the whole limit.
	Beyond(over, remaining int64) float64

	facts() *Facts
}

// Facts are what callers know of an algorithm.
type Facts struct {
	Kind  string // as the scripts call it
	Limit int64  // the most that a request can cost, in permits
	Unit  int64  // how many units a permit is
	// Largest is the most that settled costs can charge, in units.
	Largest int64
	// Heaviest is the largest charge in permits for which no arithmetic overflows. It is 0 if
	// no charge is above the Limit.
	Heaviest int64
	Width    int // how many numbers a reading has
	Counted  int // which of them grows with a charge
	told     int // which of them Told returns
	// Packs reports that a reading fits into one number.
	Packs bool
	// Lasts reports that what is charged ends with a window, and that Told is how many
	// milliseconds of that window are left.
	Lasts bool
	// Entries reports that a time is stored for each permit. A reading does not say when each
	// of them leaves. After a charge its third number is their mark.
	Entries bool
	// Estimates reports that costs can be estimates with a lease.
	Estimates bool
	// Moves reports that the numbers change with the time.
	Moves bool
	// Tick is what RetryAfter is rounded up to, if that is coarse.
	Tick   time.Duration
	window time.Duration // how long one is, if all are alike
}

// base has the facts of an algorithm and the methods that most algorithms share.
type base struct{ Facts }

func (b *base) facts() *Facts { return &b.Facts }

// Told returns one of the numbers.
func (b *base) Told(r Reading) int64 { return r.N[b.told] }

// Plausible reports whether neither of the first two numbers is below 0.
func (*base) Plausible(r Reading) bool { return min(r.N[0], r.N[1]) >= 0 }

// Unpack reads nothing.
func (*base) Unpack(int64) (Reading, bool) { return Reading{}, false }

// UnpackText reads nothing.
func (*base) UnpackText(string) (Reading, bool) { return Reading{}, false }

// Beyond returns a window for each time that the limit is exceeded.
func (b *base) Beyond(over, remaining int64) float64 {
	windows := CeilDiv(over-remaining, b.Limit)
	if remaining == b.Limit {
		windows++
	}
	return float64(windows) * float64(b.window)
}

// Cell is the state of one subject under one rule. The algorithm defines what the numbers
// mean. The zero Cell is that of a subject which was never seen.
type Cell struct {
	now  int64 // the time that the cell is advanced to
	from int64 // when what is counted began
	n, m int64
	log  []int64
	room int     // the most entries that the array of log has held
	by   *kept   // the policy that charged it last, for a kept bucket
	Ban  *Record // the record of the rule's ban; nil if it has none
	Hold *Record // the record of the subject's hold; nil if it can have none
}

// Reading is the state of a policy after a decision, in the script's numbers.
type Reading struct {
	Denied    bool  // because too much was taken
	Instances int32 // this process is one of so many; 0 and 1 mean the same
	Ban, Hold int64 // how many milliseconds a ban and a hold still last
	N         [4]int64
}

// Refused reports whether the policy did not grant the request, because of its limit, a ban
// or a hold.
func (r *Reading) Refused() bool { return r.Denied || max(r.Ban, r.Hold) > 0 }

// Figures are what a reading means.
type Figures struct {
	Allowed, Banned, OnHold bool

	Remaining int64
	Left      int64         // Remaining as if there was no ban and no hold
	Window    time.Duration // the longest time in which a used-up policy becomes whole again
	// RetryAfter is how long until the request is granted, NextAfter until more than Remaining
	// can be taken, and ResetAfter until nothing is in use.
	RetryAfter, NextAfter, ResetAfter time.Duration
}

// Integer returns a number as the scripts take it.
func Integer(n int64) any { return strconv.FormatInt(n, 10) }
