package limit

import (
	"strconv"
	"time"
)

// rule is a compiled policy: its numbers, its script and its model.
//
// The model is the algorithm in Go, in the same integers as the script. The tests compare
// the scripts with it, and a local limiter decides by it.
type rule interface {
	id() *identity

	// kind returns which of the scripts' kinds it is, and numbers returns its numbers as
	// limit_<kind>.lua takes them.
	kind() string
	numbers() []any
	// packs reports whether a reply of limit_<kind>.lua fits into one number. unpack reads
	// such a reply, and unpackText one that is a string. Any other reply has the numbers
	// of a reading.
	packs() bool
	unpack(n int64) (reading, bool)
	unpackText(text string) (reading, bool)
	// told returns a reading from a policy's numbers in the reply of limits/take.lua.
	// back is how many units the requests behind this one took, and charged says that the
	// policy was charged for this one.
	told(numbers []int64, back int64, charged bool) reading
	// most returns the largest state, in units.
	most() int64

	// advance brings a cell up to now, in microseconds.
	advance(c *cell, now int64)
	// admits reports whether an advanced cell has room.
	admits(c *cell, cost int64) bool
	// charge takes a cost above 0 from an advanced cell that admits it, and returns what
	// the script would report.
	charge(c *cell, cost int64) reading
	// term returns the number of a reading that limits/settle.lua needs.
	term(r reading) int64
	// refund gives back to an advanced cell up to back permits of a cost that was taken
	// at that moment, if they are still left. It reports whether it gave any back.
	refund(c *cell, term, cost, back int64, at moment) bool
	// owe charges an advanced cell for permits that were used already. It returns how
	// many the cell cannot hold.
	owe(c *cell, permits int64) (forgiven int64)
	// read returns what the script would report about an advanced cell.
	read(c *cell, cost int64) reading

	// age returns a reading after some microseconds without a request.
	age(r reading, passed int64) reading

	// resume fills an empty cell from a reading that was made at that time, in
	// microseconds. It leaves no more permits than were left.
	resume(c *cell, r reading, at int64)

	// lasts returns how many nanoseconds are left of a window in which permits were just
	// taken. ends is false for policies that drain.
	lasts(r reading) (left int64, ends bool)

	// state returns what a reading means.
	state(r reading, cost int64) State
}

// identity is what every rule has.
type identity struct {
	name  string // as decisions report it
	tail  string // the end of a Redis key: the name and the numbers
	limit int64  // the most that a request can cost
	unit  int64  // how many units the script counts for a permit
	// quotaUnit tells clients what a permit is; empty means requests.
	quotaUnit string
	// shadow reports that the policy is decided and not enforced.
	shadow bool
	ban    *ban // nil if it has none
	// lease is how long an estimate outlives its process; 0 means until the window ends.
	lease time.Duration
	// once reports that a request costs 1, whatever its cost is.
	once bool
	// kept has the numbers of a policy that keeps its state when they change.
	kept string
}

// costs returns what a request of that cost costs the policy. Below 0 it is a question.
func (i *identity) costs(cost int64) int64 {
	if i.once {
		return max(min(cost, 1), -1)
	}
	return cost
}

func newIdentity(p interface {
	PolicyName() string
	signature() string
}, limit, unit int64,
) identity {
	name, tail := p.PolicyName(), p.signature()
	if name != tail {
		tail = name + "!" + tail
	}
	return identity{name: name, tail: tail, limit: limit, unit: unit}
}

func (i *identity) id() *identity { return i }

func (i *identity) most() int64 { return i.limit }

func (*identity) packs() bool                       { return true }
func (*identity) unpack(int64) (reading, bool)      { return reading{}, false }
func (*identity) unpackText(string) (reading, bool) { return reading{}, false }

// cell is the state of one subject under one rule. The rule defines what the numbers
// mean. The zero cell is that of a subject which was never seen.
type cell struct {
	now  int64 // the time that the cell is advanced to
	from int64 // when what is counted began
	n, m int64
	log  []int64
	room int         // the most entries that the array of log has held
	ban  *record     // the record of the rule's ban; nil if it has none
	by   *keptBucket // the policy that charged it last, for a keptBucket
}

// reading is the state of a policy after a decision, in the script's numbers.
type reading struct {
	denied    bool  // because too much was taken; bans are in ban
	instances int32 // this process is one of so many; 0 and 1 mean the same
	ban       int64 // how many milliseconds a ban still lasts
	n         [4]int64
}

func integer(n int64) any { return strconv.FormatInt(n, 10) }

// ceilDiv returns a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}
