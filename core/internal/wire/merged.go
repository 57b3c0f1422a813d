package wire

import (
	"context"
	"iter"

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
	by := of.merging
	m.args = words[3+by.Keys*len(runs)+len(by.Lead):][:len(args)] // a copy, not the first call's own memory
	m.IntSliceCmd = *redis.NewIntSliceCmd(ctx, words...)
	return m
}

func (m *merged) words(name string) []any {
	by := m.of.merging
	words := make([]any, 0, 3+len(by.Lead)+max(by.Numbers, len(m.args))+(by.Keys+by.Own+1)*len(m.runs))
	words = append(words, name, &m.text, Count(by.Keys*len(m.runs)))
	for i := range m.runs {
		r := &m.runs[i]
		words = append(append(words, (*Word)(&r.key)), r.keys...) // not the call's own key: that memory may be used again
	}
	words = append(append(words, by.Lead...), m.args...)
	for range by.Numbers - len(m.args) {
		words = append(words, "0")
	}
	for i := range m.runs {
		r := &m.runs[i]
		if r.asked == 0 { // only in the first attempt: a hook may still read its words
			r.asked = r.calls
		}
		words = append(append(words, r.own...), (*runCalls)(r))
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
func (m *merged) fits(told []int64) bool {
	by := m.of.merging
	if by.Moves && len(told) == 1 {
		return true
	}
	if len(told) != by.Told*len(m.runs) {
		return false
	}
	for i := range m.runs {
		if first := told[i*by.Told]; first < by.Least || first > int64(m.runs[i].calls) {
			return false
		}
	}
	return true
}

// unmerge has each call made again by itself.
func (m *merged) unmerge() {
	m.SetErr(ErrUnmerged)
	m.deliver()
}

// deliver gives each call its answer.
func (m *merged) deliver() {
	told, err := m.Result()
	if err == nil && !m.fits(told) {
		err = errNotGiven
	}
	by := m.of.merging
	if err != nil && err != ErrUnmerged {
		err = by.Script.place(err)
	}
	for i := range m.runs {
		one, own := err, told
		if err == nil && len(told) > 1 {
			if own = told[i*by.Told:][:by.Told]; own[0] < 0 {
				one = ErrUnmerged
			}
		}
		m.runs[i].deliver(one, own)
	}
}

// deliver gives the calls of a run their answers and then forgets them, because their
// memory may be used again.
func (r *run) deliver(err error, told []int64) {
	first, place := r.first, int64(0)
	r.first, r.last = nil, nil
	for c := range chain(first) {
		if place++; err != nil {
			c.SetErr(err)
		} else {
			c.told, c.place = told, place
		}
	}
}
