package scripttest

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

// holding prepares a call: the first key holds a value for some time.
func holding(value any, ttl time.Duration) func(testing.TB, redis.UniversalClient, []string) {
	return func(tb testing.TB, rdb redis.UniversalClient, keys []string) {
		tb.Helper()
		if err := rdb.Set(tb.Context(), keys[0], value, ttl).Err(); err != nil {
			tb.Error(err)
		}
	}
}

// TestWhatIsMeantPasses changes a good script to others that are good.
func TestWhatIsMeantPasses(t *testing.T) {
	t.Parallel()
	const set = "call('SET', key, score, 'PX', ttl)"
	for name, c := range map[string]struct {
		old, new string
		effects  string // "" is SET
		call     Call
	}{
		"an error that is wanted": {"return best", "error('odd')", "", Call{Fails: "odd"}},
		"a reply that is wanted":  {"return best", "return redis.error_reply('ERR odd')", "", Call{Fails: "odd"}},
		"lists":                   {"return best", "return {best, {'x', false}}", "", Call{Want: []any{uint8(7), []any{"x", nil}}}},
		"for ever":                {", 'PX', ttl", "", "", Call{Forever: true}},
		"a time to live later": {set, "call('HSET', key, 'score', score)\ncall('PEXPIRE', key, ttl)", "HSET, PEXPIRE",
			Call{}},
		"a key without one from before":       {"x", "x", "", Call{Prepare: holding(9, 0), Want: 9}},
		"one that is not written":             {"'PX', ttl", "'NX', 'PX', ttl", "", Call{Prepare: holding(1, 0)}},
		"one that could not be written":       {"local best", "redis.pcall('SADD', key, 1)\nlocal best", "SET, SADD", Call{Prepare: holding(9, 0)}},
		"one that is read into another":       {set, "call('COPY', key, KEYS[2])\ncall('PEXPIRE', KEYS[2], ttl)", "COPY, PEXPIRE", Call{Keys: []string{"{x}", "{x}2"}, Prepare: holding(1, 0)}},
		"one that is gone":                    {set, "call('DEL', key)", "DEL", Call{Prepare: holding(1, 0)}},
		"an exponent that is a number":        {"score > best", "true", "", Call{Args: []any{"1e+15", 60_000}, Want: int64(1e15)}},
		"an exponent of the caller's":         {"T', key, score", "T', key, 'at ' .. ARGV[1]", "", Call{Args: []any{"1e+15", 60_000}}},
		"an exponent in the caller's bytes":   {"T', key, score", "T', key, ARGV[1] .. ':'", "", Call{Args: []any{[]byte("1e+15"), 60_000}}},
		"an exponent in a key":                {"x", "x", "", Call{Keys: []string{"{x}:1e+15"}}},
		"an exponent of what Redis kept":      {set + "\n  best = score", "call('SET', key, call('GET', key), 'PX', ttl)\nbest = call('GET', key)", "", Call{Prepare: holding("1e+05", time.Minute), Args: []any{"200000", 60_000}, Want: "1e+05"}},
		"an exponent in a list of Redis":      {set, "call('SET', key, call('MGET', key)[1], 'PX', ttl)", "", Call{Prepare: holding("1e+05", time.Minute), Args: []any{"200000", 60_000}}},
		"an exponent in a string":             {"T', key, score", "T', key, 'eps 1e-09 ' .. ARGV[1]", "", Call{}},
		"a fence":                             {"T', key, score", "T', key, string.format('%.0f', 1764000000123456)", "", Call{}},
		"what looks like one in hexadecimals": {"T', key, score", "T', key, 'a1e15b/5e+10d+7'", "", Call{}},
		"pcall": {"local best", "if not redis.pcall('HGET', key, 'x') then error('odd') end\nlocal best", "",
			Call{Prepare: holding(1, time.Minute)}},
		"a comment at the end":   {"return best\n", "return best -- the end", "", Call{Want: 7}},
		"a command by its name":  {set, "local name = 'SET'\ncall(name, key, score, 'PX', ttl)", "", Call{}},
		"redis by another name":  {set, "local r = redis\nr.call('SET', key, score, 'PX', ttl)", "", Call{}},
		"two thousand arguments": {set, "local l = {}\nfor i = 1, 2000 do l[i] = i end\ncall('RPUSH', key, unpack(l))\ncall('PEXPIRE', key, ttl)", "RPUSH, PEXPIRE", Call{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := strings.Replace(good, c.old, c.new, 1)
			if c.effects != "" {
				source = strings.Replace(source, "-- effects  SET with PX", "-- effects  "+c.effects, 1)
			}
			if c.call.Keys == nil {
				c.call.Keys = []string{"{x}"}
			} else if len(c.call.Keys) > 1 {
				source = strings.Replace(source, "-- ARGV[1]", "-- KEYS[2]  another\n-- ARGV[1]", 1)
			}
			if c.call.Args == nil {
				c.call.Args = []any{7, 60_000}
			}
			if lines := said(t, script.New("highest.lua", source), c.call); len(lines) > 0 {
				t.Errorf("a good script: got the faults %q, want none", lines)
			}
		})
	}
}

// TestHiddenEffectsAreSeen writes in ways that the text does not show, under a header
// that says that nothing is written.
func TestHiddenEffectsAreSeen(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"local r = redis\nr.call('SET', KEYS[1], 1, 'PX', 1000)",
		"\nredis['call']('SET', KEYS[1], 1, 'PX', 1000)",
		"local send, other\nsend = redis.call send('SET', KEYS[1], 1, 'PX', 1000)",
		"local a = redis.call local c = a\nc('set', KEYS[1], 1, 'PX', 1000)",
		"\npcall(redis.call, 'SET', KEYS[1], 1, 'PX', 1000)",
		"local name = 'SE'\nredis.pcall(name .. 'T', KEYS[1], 1, 'PX', 1000)",
		"local t = { send = redis.call }\nt.send('SET', KEYS[1], 1, 'PX', 1000)",
	} {
		s := script.New("x.lua", "-- KEYS[1]  k\n-- returns  nothing\n-- effects  none\n"+body)
		lines := said(t, s, Call{Keys: []string{"{x}"}})
		for _, server := range []string{"miniredis", "standalone", "cluster"} {
			if about := on(server, lines); len(about) != 1 || !strings.HasPrefix(about[0], "x.lua:5: SET is called but not among the effects") {
				t.Errorf("%s on %s: got %q, want one fault, that SET is called", body, server, lines)
			}
		}
	}
	s := script.New("x.lua", "-- KEYS[1]  k\n-- returns  nothing\n-- effects  none\nredis.call('PUBLISH', KEYS[1], 1)")
	if lines := said(t, s, Call{Keys: []string{"{x}"}}); len(lines) != 1 {
		t.Errorf("an effect that the text shows: got %q, want one fault", lines)
	}
}
