package wire

import (
	"context"
	"iter"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// mostAttempts is how often a merged call is sent at most: as it is, then with one key
// each, and then with the script's text.
const mostAttempts = 3

// merged is one call that replaces several.
type merged struct {
	redis.IntSliceCmd

	of       *Script
	args     []any
	runs     []run
	attempts int
	begun    bool
	text     text
}

// newMerged makes a first attempt, or another attempt after before.
func newMerged(ctx context.Context, of *Script, args []any, runs []run, before *merged, eval bool) *merged {
	m := &merged{of: of, args: args, runs: runs, attempts: 1}
	if before != nil {
		m.attempts, m.begun = before.attempts+1, before.begun
	}
	name := "evalsha"
	if eval {
		name = "eval"
	}
	m.text = text{of: m, script: of.merging.Script, eval: eval}
	words := m.words(name)
	m.args = words[4+len(runs):][:len(args)] // a copy, not the first call's own memory
	m.IntSliceCmd = *redis.NewIntSliceCmd(ctx, words...)
	return m
}

func (m *merged) words(name string) []any {
	by := m.of.merging
	words := make([]any, 0, 4+by.Numbers+3*len(m.runs))
	words = append(words, name, &m.text, Count(len(m.runs)))
	for i := range m.runs {
		words = append(words, (*Word)(&m.runs[i].key)) // not the call's own key: that memory may be used again
	}
	words = append(words, by.Kind)
	words = append(words, m.args...)
	for range by.Numbers - len(m.args) {
		words = append(words, "0")
	}
	for i := range m.runs {
		r := &m.runs[i]
		if r.asked == 0 { // only in the first attempt: a hook may still read its words
			r.asked = r.calls
		}
		words = append(words, r.cost, (*runCalls)(r))
	}
	return words
}

// NoRetry is as that of a command.
func (*merged) NoRetry() bool { return true }

// begin drops the calls that were withdrawn before. The others count as written from then
// on.
func (m *merged) begin() bool {
	if m.begun {
		return true
	}
	m.begun = true
	for i := range m.runs {
		m.runs[i].begin()
	}
	return true
}

// chain yields the commands from first on, and unlinks each.
func chain(first *Command) iter.Seq[*Command] {
	return func(yield func(*Command) bool) {
		for first != nil {
			c := first
			first, c.next = c.next, nil
			if !yield(c) {
				return
			}
		}
	}
}

// begin drops the calls that were withdrawn.
func (r *run) begin() {
	first := r.first
	r.first, r.last, r.calls = nil, nil, 0
	for c := range chain(first) {
		switch {
		case !c.begin():
		case r.first == nil:
			r.first, r.last, r.calls = c, c, 1
		default:
			r.add(c)
		}
	}
}

// fits reports whether the script may have given that reply.
func (m *merged) fits(states []int64) bool {
	for _, state := range states {
		if state < 0 || state > 0 && !m.of.gives(state-1) {
			return false
		}
	}
	return len(states) == len(m.runs)
}

// deliver gives each call its answer.
func (m *merged) deliver() {
	states, err := m.Result()
	if err == nil && !m.fits(states) {
		err = errNotGiven
	}
	if err != nil && err != ErrUnmerged {
		err = m.of.merging.Script.place(err)
	}
	numbers := make([]int64, len(m.args))
	for i, arg := range m.args {
		numbers[i], _ = strconv.ParseInt(arg.(string), 10, 64)
	}
	for i := range m.runs {
		one, before := err, int64(0)
		if one == nil {
			if before = states[i] - 1; before < 0 {
				one = ErrUnmerged
			}
		}
		m.runs[i].deliver(one, m.of.merging, numbers, before)
	}
}

// deliver gives the calls of a run their answers and then forgets them, because their
// memory may be used again.
func (r *run) deliver(err error, by *Merging, numbers []int64, state int64) {
	cost, _ := strconv.ParseInt(r.cost.(string), 10, 64)
	first := r.first
	r.first, r.last = nil, nil
	for c := range chain(first) {
		if err != nil {
			c.SetErr(err)
		} else {
			c.number, c.whole = by.Next(numbers, state, cost), true
			if c.number >= 0 {
				state = c.number
			}
		}
	}
}
