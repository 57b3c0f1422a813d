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

// Call is one call of a script, and what it should do.
type Call struct {
	// Name appears in messages. If it is empty, the number of the call does.
	Name string
	// Keys are the keys. Run puts a prefix before each that no other test uses. It has no
	// braces.
	Keys []string
	// Args are what the script gets as ARGV, of the types that [script.Runner.Run] takes.
	Args []any
	// Want is the reply: an integer of any type, a string, or a []any of these. Lua's
	// true is 1, and its false is nil. A nil Want allows any reply.
	Want any
	// Fails is a part of the error with which the call ends; "" means no error.
	Fails string
	// RealOnly leaves miniredis out from this call on. Use it if miniredis lacks
	// something or behaves differently and Run does not notice.
	RealOnly bool
	// Forever permits keys without a time to live.
	Forever bool
	// Prepare, if it is not nil, runs before the call. Check, if it is not nil, runs
	// after a call that ended without an error. The client may do everything. The keys
	// are Keys with the prefix.
	Prepare func(tb testing.TB, rdb redis.UniversalClient, keys []string)
	Check   func(tb testing.TB, rdb redis.UniversalClient, keys []string, reply any)
}

// Run makes the calls one after the other, and does so on each of three servers that
// begin empty: miniredis, a redis-server and a cluster of three masters. Calls with the
// same keys see each other's state. Each fault is a tb.Errorf that begins with the
// script's name and the line.
//
// If a call asks miniredis for a command or for a library of Lua that it lacks and a real
// server has, miniredis is left out from that call on. The test is then skipped there,
// with a line that says what is missing.
//
// If tb is a *testing.T, each server is a subtest. Run may be called from parallel tests.
// The first call in a process takes the time that the servers need to start.
func Run(tb testing.TB, s *script.Script, calls ...Call) {
	tb.Helper()
	CheckHeader(tb, s)
	if misbegun(s.Source()) != "" {
		return
	}
	if len(calls) == 0 {
		tb.Errorf("%s: Run was given no calls: pass at least one Call", s.Name())
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
	level   int // the level of the stack at which the script's line is found, counted from the shim
	connect func(tb testing.TB) redis.UniversalClient
}

const embedded = "miniredis"

var targets = []target{
	{embedded, 6, func(tb testing.TB) redis.UniversalClient {
		m := miniredis.RunT(tb)
		m.ClockTTL(true)
		rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), ReadTimeout: time.Minute})
		tb.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}},
	{"standalone", 5, func(tb testing.TB) redis.UniversalClient { return redistest.Standalone(tb).Admin(tb) }},
	{"cluster", 5, func(tb testing.TB) redis.UniversalClient { return redistest.Cluster(tb).Admin(tb) }},
}

// run makes the calls. If it left the server out from one of them on, it returns why.
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

// same compares a reply with want, which may have integers of any type.
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

// unrun reports a call that did not run to its end.
func (w *witness) unrun(err error) {
	w.err = err
	text := err.Error()
	line := 0
	if errors.Is(err, script.ErrConfiguration) {
		line = lineOf(headerOf(w.script.Source()), "KEYS[")
	}
	w.addf(line, "%s", text)
}
