package wire

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Merging says how several calls of one script become one call of another script. The
// arguments of a call are texts: some that it has in common with others, and then its own.
// Calls whose common arguments are equal can be merged.
//
// The other script decides runs. A run is calls with the same keys and own arguments that
// follow each other. Its keys are those of the runs. Its arguments are Lead, then the common
// arguments, filled up with 0 to Numbers of them, and then for each run its own arguments
// and the number of calls.
//
// Its reply is an array of Told whole numbers for each run, from which each call reads its
// answer. The first of a run's numbers is at most the number of its calls; if it is below 0,
// the script did nothing for the run. With Moves, a reply of one number answers every call.
// The array must have nothing but whole numbers: an error in it would shift the answers to
// the commands that follow.
//
// A Merging must not change after MergedBy.
type Merging struct {
	Script  *Script // decides the runs
	Lead    []any   // its first arguments
	Numbers int     // how many common arguments it takes at least
	Keys    int     // how many keys a call has
	Own     int     // how many arguments of a call are its own
	Tail    int     // how many arguments of a call follow these, and are not sent
	Told    int     // how many numbers are told of a run
	Least   int64   // the least that the first of these may be
	Moves   bool    // one number may be the whole reply
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
	// Unloaded has each *Merging whose script the Redis user may not load. If it is nil,
	// they are forgotten.
	Unloaded *sync.Map

	groups []group
	merged []*merged
	out    []redis.Cmder
}

func (m *Merger) refused(by *Merging) {
	if m.Unloaded != nil {
		m.Unloaded.Store(by, true)
	}
}

// isRefused reports whether nothing is merged in that way any more.
func (m *Merger) isRefused(by *Merging) bool {
	if m.Unloaded == nil {
		return false
	}
	_, is := m.Unloaded.Load(by)
	return is
}

// group is the calls of one script with the same common arguments.
type group struct {
	script *Script
	args   []any          // the common ones, as the first call has them
	runs   []run          // in their order
	last   map[string]int // the index of the last run of a key
}

// run is calls with the same keys and own arguments, in their order.
type run struct {
	key         string // the first one
	keys, own   []any  // the other keys, and the arguments, as the first call has them
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
		if most > 0 && mergeable(c) && !m.isRefused(c.text.script.merging) {
			groups = m.add(groups, c)
		} else {
			m.out = append(m.out, c)
		}
	}
	for i := range groups {
		g := &groups[i]
		takes := max(most/g.script.merging.Keys, 1)
		for at := 0; at < len(g.runs); at += takes {
			runs := g.runs[at:min(at+takes, len(g.runs))]
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
	by, words := c.text.script.merging, c.Args()
	if words[2] != Count(by.Keys) || len(words) < 3+by.Keys+by.Own+by.Tail {
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
	by, words := c.text.script.merging, c.Args()
	args := words[3+by.Keys : len(words)-by.Own-by.Tail]
	own := words[len(words)-by.Own-by.Tail:][:by.Own]
	for i := range groups {
		if g := &groups[i]; g.script.merging == c.text.script.merging && equal(g.args, args) {
			g.add(c, words[4:3+by.Keys], own)
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
	g.add(c, words[4:3+by.Keys], own)
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

func (g *group) add(c *Command, keys, own []any) {
	c.next = nil
	key := c.Key()
	i := len(g.runs) - 1
	if i < 0 || g.runs[i].key != key {
		var is bool
		if i, is = g.last[key]; !is {
			i = -1
		}
	}
	if i >= 0 && equal(g.runs[i].own, own) && equal(g.runs[i].keys, keys) {
		g.runs[i].add(c)
		return
	}
	g.last[key] = len(g.runs)
	g.runs = append(g.runs, run{key: key, keys: keys, own: own, first: c, last: c, calls: 1})
}

func (r *run) add(c *Command) {
	r.last.next = c
	r.last = c
	r.calls++
}

// Deliver gives each call its answer after the commands have ended. It returns the
// commands to send again, because the server did not know the script or refused keys of
// several slots. takes is how many keys a merged call may have from now on: 1 after such
// a refusal. If the Redis user may not load a script, nothing is merged by it from then on.
func (m *Merger) Deliver(ctx context.Context, most int) (again []redis.Cmder, takes int) {
	takes = most
	ended := m.merged
	m.merged, m.out = nil, m.out[:0]
	var sent []*Merging // whose script's text is sent; the others of that script follow it
	for _, one := range ended {
		switch err, by := one.Err(), one.of.merging; {
		case err == nil:
			one.deliver()
		case redis.HasErrorPrefix(err, "NOPERM ") && !strings.Contains(err.Error(), "user_script"):
			if one.text.eval {
				m.refused(by)
			}
			one.unmerge()
		case by.Script.refusedAtFirst(err): // the denials among them need no write
			one.unmerge()
		case redis.HasErrorPrefix(err, "NOSCRIPT No matching script") && (one.attempts >= mostAttempts || m.isRefused(by)):
			one.unmerge()
		case one.attempts >= mostAttempts:
			one.deliver()
		case redis.HasErrorPrefix(err, "NOSCRIPT No matching script"):
			m.emit(newMerged(ctx, one.of, one.args, one.runs, one, !slices.Contains(sent, by)))
			sent = append(sent, by)
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
