package wire

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Merging says how several calls of one script become one call of another script. Each
// call has one key. Its arguments are whole numbers, and the first of them is the cost.
// Calls whose other arguments are equal can be merged.
//
// The other script decides runs. A run is calls with the same key and cost that follow
// each other. Its keys are those of the runs. Its arguments are Kind, then the common
// arguments, filled up with 0 to Numbers of them, and then for each run the cost and the
// number of calls.
//
// Its reply is an array with one whole number for each run. The number is 0 if the script
// did nothing for that run. Otherwise it is 1 more than what the first script answers to
// a cost of 0, which must be 0 or more. The array must have nothing but whole numbers: an
// error in it would shift the answers to the commands that follow.
//
// A Merging must not change after MergedBy. [Script.Replies] of the first script checks the
// states too.
type Merging struct {
	Script  *Script // decides the runs
	Kind    string  // its first argument
	Numbers int     // how many common arguments it takes
	// Next returns what the first script answers in that state to a call with these
	// common arguments. If the answer is 0 or more, it is the state for the next call; a
	// negative answer does not change the state. Next must be safe for concurrent use.
	Next func(numbers []int64, state, cost int64) int64
}

// MergedBy returns a copy of the script whose calls may be merged. The copy is also Batched.
func (s *Script) MergedBy(m *Merging) *Script {
	own := s.Batched()
	own.merging = m
	return own
}

// ErrUnmerged is the error of a call for which a merged call did nothing. The call is
// made again by itself.
const ErrUnmerged replyError = "not decided in a merged call"

// replyError is what this package says of a reply that is no answer.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError makes it a [redis.Error]: it stands for a reply.
func (replyError) RedisError() {}

// Merger merges the commands of one batch after another. The zero Merger is ready to use,
// by one goroutine at a time.
type Merger struct {
	groups []group
	merged []*merged
	out    []redis.Cmder
}

// group is the calls of one script with the same arguments except the cost.
type group struct {
	script *Script
	args   []any          // of the first call, without its cost
	runs   []run          // in their order
	last   map[string]int // the index of the last run of a key
}

// run is calls with one key and cost, in their order.
type run struct {
	key         string
	cost        any
	first, last *Command
	calls       int
	asked       int // how many calls there were before any was withdrawn
}

// runCalls is the word of a command that says how many calls a run has. go-redis asks it
// for its bytes when it writes the command, as it does with a text. A hook that logs the
// command sees how many calls there were when the command was made.
type runCalls run

// MarshalBinary returns how many calls have not been withdrawn.
func (r *runCalls) MarshalBinary() ([]byte, error) {
	if r.calls < len(countTexts) {
		return countTexts[r.calls], nil
	}
	return []byte(strconv.Itoa(r.calls)), nil
}

// String returns the number for logs and traces.
func (r *runCalls) String() string { return strconv.Itoa(r.asked) }

// Merge returns the commands to send instead of all. A merged command has up to most
// keys; if most is 0, no calls are merged. Merged calls of one key keep their order. The
// slice is valid until the next Merge or Deliver.
func (m *Merger) Merge(ctx context.Context, all []*Command, most int) []redis.Cmder {
	groups := m.groups[:0]
	m.merged, m.out = m.merged[:0], m.out[:0]
	for _, c := range all {
		if most > 0 && mergeable(c) {
			groups = m.add(groups, c)
		} else {
			m.out = append(m.out, c)
		}
	}
	for i := range groups {
		g := &groups[i]
		for at := 0; at < len(g.runs); at += most {
			runs := g.runs[at:min(at+most, len(g.runs))]
			if len(runs) == 1 && runs[0].calls == 1 {
				m.out = append(m.out, runs[0].first)
				continue
			}
			m.emit(newMerged(ctx, g.script, g.args, slices.Clone(runs), nil, false))
		}
	}
	m.groups = groups
	return m.out
}

func (m *Merger) emit(one *merged) {
	m.merged = append(m.merged, one)
	m.out = append(m.out, one)
}

func mergeable(c *Command) bool {
	if c.unmerged || c.text.script.merging == nil {
		return false
	}
	words := c.Args()
	if words[2] != counts[1] || len(words) < 5 {
		return false
	}
	for _, word := range words[4:] {
		if _, is := word.(string); !is {
			return false
		}
	}
	return true
}

// add puts a call into its group.
func (m *Merger) add(groups []group, c *Command) []group {
	words := c.Args()
	args := words[5:]
	for i := range groups {
		if g := &groups[i]; g.script.merging == c.text.script.merging && equal(g.args, args) {
			g.add(c, words[4])
			return groups
		}
	}
	if n := len(groups); n < cap(groups) { // use the memory of an old group again
		groups = groups[:n+1]
	} else {
		groups = append(groups, group{})
	}
	g := &groups[len(groups)-1]
	if g.last == nil {
		g.last = map[string]int{}
	}
	clear(g.last)
	g.script, g.args, g.runs = c.text.script, args, g.runs[:0]
	g.add(c, words[4])
	return groups
}

func equal(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (g *group) add(c *Command, cost any) {
	c.next = nil
	key := c.Key()
	if n := len(g.runs); n > 0 && g.runs[n-1].key == key && g.runs[n-1].cost == cost {
		g.runs[n-1].add(c)
		return
	}
	if i, is := g.last[key]; is && g.runs[i].cost == cost {
		g.runs[i].add(c)
		return
	}
	g.last[key] = len(g.runs)
	g.runs = append(g.runs, run{key: key, cost: cost, first: c, last: c, calls: 1})
}

func (r *run) add(c *Command) {
	r.last.next = c
	r.last = c
	r.calls++
}

// Deliver gives each call its answer after the commands have ended. It returns the
// commands to send again, because the server did not know the script or refused keys of
// several slots. takes is how many keys a merged call may have from now on: 1 after such
// a refusal, and 0 if the Redis user may not load the script.
func (m *Merger) Deliver(ctx context.Context, most int) (again []redis.Cmder, takes int) {
	takes = most
	ended := m.merged
	m.merged, m.out = nil, m.out[:0]
	eval := false
	for _, one := range ended {
		switch err := one.Err(); {
		case err == nil || one.attempts >= mostAttempts:
			one.deliver()
		case redis.HasErrorPrefix(err, "NOSCRIPT No matching script"):
			m.emit(newMerged(ctx, one.of, one.args, one.runs, one, !eval)) // the first sends the text, and the others follow it
			eval = true
		case redis.HasErrorPrefix(err, "NOPERM ") && !strings.Contains(err.Error(), "user_script"):
			takes = 0
			one.SetErr(ErrUnmerged)
			one.deliver()
		case redis.HasErrorPrefix(err, "CROSSSLOT Keys") && len(one.runs) > 1:
			takes = min(takes, 1)
			for i := range one.runs {
				m.emit(newMerged(ctx, one.of, one.args, one.runs[i:i+1], one, false))
			}
		default:
			one.deliver()
		}
	}
	return m.out, takes
}
