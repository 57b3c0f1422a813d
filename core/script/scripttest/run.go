package scripttest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// Call is one call of a script.
type Call struct {
	// Name is for messages; nil value: its place in the row.
	Name string
	// Keys are put behind a prefix that no other test uses, which has no braces.
	Keys []string
	// Args are what the script gets as ARGV, of the types that [script.Runner.Run] takes.
	Args []any
	// Want is the reply: an integer of any type, a string, or a []any of these.
	// Lua's true is 1 and its false nil. nil means any reply.
	Want any
	// Fails is part of the error that the call ends with; "" means none.
	Fails string
	// RealOnly leaves miniredis out from this call on: for what it has not got or
	// does otherwise, where Run does not notice by itself.
	RealOnly bool
	// Forever permits keys without a time to live.
	Forever bool
	// Prepare, where it is not nil, runs before the call, and Check behind one that
	// ended without an error. The client may do everything; the keys are Keys with
	// the prefix.
	Prepare func(tb testing.TB, rdb redis.UniversalClient, keys []string)
	Check   func(tb testing.TB, rdb redis.UniversalClient, keys []string, reply any)
}

// Run makes the calls one after the other, and all of them on each of three
// servers that begin empty: miniredis, a redis-server and a cluster of three
// masters. Calls that name the same keys meet on them. Each fault is a tb.Errorf
// that begins with the script's name and the line.
//
// miniredis is left out from the first call on that asks it for a command or for
// a library of Lua which it lacks, and which a real server has: the test is then
// skipped there, with a line that says what.
//
// Of a *testing.T each server is a subtest. It may be called from parallel tests.
// The first call in a process takes the time that the servers need to start.
func Run(tb testing.TB, s *script.Script, calls ...Call) {
	tb.Helper()
	CheckHeader(tb, s)
	if misbegun(s.Source()) != "" {
		return
	}
	if len(calls) == 0 {
		tb.Errorf("%s: no call of it is tested", s.Name())
	}
	for _, on := range targets {
		if t, ok := tb.(*testing.T); ok {
			t.Run(on.name, func(t *testing.T) {
				t.Helper()
				if without := on.run(t, s, calls); without != "" {
					t.Skip(without)
				}
			})
		} else if without := on.run(tb, s, calls); without != "" {
			tb.Log(without)
		}
	}
}

type target struct {
	name    string
	level   int // where the script's line is found, counted from the shim's
	connect func(tb testing.TB) redis.UniversalClient
}

const embedded = "miniredis"

var targets = []target{
	{embedded, 6, func(tb testing.TB) redis.UniversalClient {
		m := miniredis.RunT(tb)
		m.ClockTTL(true)
		rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
		tb.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}},
	{"standalone", 5, func(tb testing.TB) redis.UniversalClient { return redistest.Standalone(tb).Admin(tb) }},
	{"cluster", 5, func(tb testing.TB) redis.UniversalClient { return redistest.Cluster(tb).Admin(tb) }},
}

// run makes the calls, and says why the server was left out from one of them on.
func (on target) run(tb testing.TB, s *script.Script, calls []Call) (without string) {
	tb.Helper()
	rdb := on.connect(tb)
	runner, err := script.NewRunner(rdb, &script.Options{Budget: 30 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	shimmed := script.New(s.Name(), shim(s.Source(), on.level))
	prefix := redistest.Prefix(tb) + ":"
	for i, c := range calls {
		if c.Name == "" {
			c.Name = fmt.Sprintf("call %d", i+1)
		}
		if c.RealOnly && on.name == embedded {
			return fmt.Sprintf("%s: from %s on it is run on real servers only", s.Name(), c.Name)
		}
		for k, key := range c.Keys {
			if k == 0 {
				c.Keys = append([]string(nil), c.Keys...)
			}
			c.Keys[k] = prefix + key
		}
		if c.Prepare != nil {
			c.Prepare(tb, rdb, c.Keys)
		}
		reply, err := runner.Run(tb.Context(), shimmed, c.Keys, c.Args...)
		w := &witness{script: s, call: c, on: on.name}
		if err != nil {
			w.unrun(err)
		} else {
			w.hear(reply)
		}
		for _, f := range w.found {
			tb.Errorf("%s%v (%s, %s)", s.Name(), f, c.Name, on.name)
		}
		if w.lacks != "" {
			return fmt.Sprintf("%s, which miniredis lacks: from %s on it is run on real servers only", w.lacks, c.Name)
		}
		if c.Check != nil && w.err == nil {
			c.Check(tb, rdb, c.Keys, w.reply)
		}
	}
	return ""
}

// same compares a reply with one that may have integers of any type.
func same(want, got any) bool {
	if list, ok := want.([]any); ok {
		others, ok := got.([]any)
		if !ok || len(list) != len(others) {
			return false
		}
		for i := range list {
			if !same(list[i], others[i]) {
				return false
			}
		}
		return true
	}
	if v := reflect.ValueOf(want); v.IsValid() && v.CanInt() {
		want = v.Int()
	} else if v.IsValid() && v.CanUint() {
		n, ok := got.(int64)
		return ok && n >= 0 && uint64(n) == v.Uint()
	}
	return want == got
}

// unrun is about a call that came to nothing.
func (w *witness) unrun(err error) {
	w.err = err
	text := err.Error()
	line := 0
	if errors.Is(err, script.ErrConfiguration) {
		line = lineOf(headerOf(w.script.Source()), "KEYS[")
	}
	w.addf(line, "%s", text)
}
