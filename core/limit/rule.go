package limit

import (
	"strconv"
	"time"

	"github.com/neap-go/neap/core/script"
)

// rule is a policy made ready: its numbers, its script, and its model.
//
// The model is the algorithm in Go, in the same integers as the script. It is
// the oracle that the scripts are tested against, and what a local limiter
// runs on.
type rule interface {
	id() *identity

	// alone is the script for a set of this one policy, nil when the reply
	// would not fit its one number; args are its arguments. A cost of -n asks
	// about n permits and takes none, here and in limit_set.lua.
	alone() *script.Script
	args(cost int64) []any
	// unpack reads a reply of alone that is a whole number, and unpackText one that is a string. Any other has the
	// numbers of the policy, as in the reply of limit_set.lua.
	unpack(n int64) (reading, bool)
	unpackText(text string) (reading, bool)
	// entry is the policy's part of the arguments of limit_set.lua and limit_settle.lua, and width
	// how many numbers it has in their replies. most is the most that its state can hold, in units.
	entry() [6]any
	most() int64
	width() int

	// advance brings a cell up to now, in microseconds.
	advance(c *cell, now int64)
	// admits says whether an advanced cell has room.
	admits(c *cell, cost int64) bool
	// charge takes a cost above 0 from an advanced cell that admits it, and tells
	// what the script would.
	charge(c *cell, cost int64) reading
	// term is what of a reading limit_settle.lua asks for.
	term(r reading) int64
	// refund gives back to an advanced cell so many permits of a cost that was taken
	// at that moment, as far as they are left, and says whether any were.
	refund(c *cell, term, cost, back int64, at moment) bool
	// owe charges an advanced cell permits that were used already, and returns how many
	// it can not hold.
	owe(c *cell, permits int64) (forgiven int64)
	// read tells an advanced cell as the script would.
	read(c *cell, cost int64) reading

	// age is a reading after so many microseconds without a request.
	age(r reading, passed int64) reading

	// resume makes an empty cell of a reading that was told at that time, in microseconds. It leaves no more than was left.
	resume(c *cell, r reading, at int64)

	// lasts is how many nanoseconds a window has left in which permits were just taken; ends is false of what drains.
	lasts(r reading) (left int64, ends bool)

	// state is what a reading means.
	state(r reading, cost int64) State
}

// identity is what every rule has.
type identity struct {
	name  string // as decisions report it
	tail  string // of a Redis key: the name and the numbers
	limit int64  // the most a request can cost
	unit  int64  // what the script counts for a permit
	// quotaUnit is what a permit is, for clients; empty is requests.
	quotaUnit string
	// shadow says that the policy is watched and not enforced.
	shadow bool
	ban    *ban // nil if it has none
	// lease is how long an estimate outlives its process; 0 is until the window ends.
	lease time.Duration
	// once says that a request costs 1, whatever its cost is.
	once bool
	// kept are the numbers of a policy whose state keeps its key when they change.
	kept string
}

// costs is what a request of that cost costs the policy; below 0 it is a question.
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

func (*identity) unpack(int64) (reading, bool)      { return reading{}, false }
func (*identity) unpackText(string) (reading, bool) { return reading{}, false }

// cell is one subject's state under one rule: what the numbers mean is the
// rule's. The zero cell is a subject never seen.
type cell struct {
	now  int64 // the time that the cell is advanced to
	from int64 // when what is counted began
	n, m int64
	log  []int64
	room int         // of the array that log is in, at most
	ban  *record     // of the rule's ban; nil if it has none
	by   *keptBucket // that charged it last, of such a bucket
}

// reading is the state of a policy after a decision, in the script's numbers.
type reading struct {
	denied    bool  // by what was taken
	instances int32 // of how many this process is one; 0 and 1 are the same
	ban       int64 // how many milliseconds a ban still lasts
	n         [4]int64
}

// readSigned reads a script's first number, which is -1 - n when denied.
func readSigned(n int64) (int64, bool) {
	if n < 0 {
		return -1 - n, true
	}
	return n, false
}

func integer(n int64) any { return strconv.FormatInt(n, 10) }

// ceilDiv is a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}
