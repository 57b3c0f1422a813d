package scripttest

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

const good = `-- Keeps the highest score.
--
-- KEYS[1]  the score
-- ARGV[1]  score
-- ARGV[2]  ttl, in milliseconds
-- returns  the highest score
-- effects  SET with PX where the score is higher
local key, score, ttl = KEYS[1], ARGV[1] + 0, ARGV[2]

local call = redis.call
local best = (call('GET', key) or 0) + 0
if score > best then
  call('SET', key, score, 'PX', ttl)
  best = score
end
return best
`

var highest = script.New("highest.lua", good)

func TestAGoodScriptPasses(t *testing.T) {
	t.Parallel()
	saw := 0
	Run(t, highest,
		Call{Keys: []string{"{ann}"}, Args: []any{7, 60_000}, Want: 7},
		Call{Keys: []string{"{ann}"}, Args: []any{3, 60_000}, Want: int64(7)},
		Call{Keys: []string{"{bob}"}, Args: []any{3, 60_000}, Check: func(tb testing.TB, rdb redis.UniversalClient, keys []string, reply any) {
			tb.Helper()
			saw++
			if n, err := rdb.Get(tb.Context(), keys[0]).Int64(); err != nil || n != reply {
				tb.Errorf("GET: got %d, %v, want the reply %v", n, err, reply)
			}
		}},
	)
	if saw != 3 {
		t.Errorf("Check: got %d runs, want 3", saw)
	}
}

// TestEachTrapIsFlagged puts one trap after the other in a good script. Run must name
// its file and line.
func TestEachTrapIsFlagged(t *testing.T) {
	t.Parallel()
	one := Call{Name: "one", Keys: []string{"a{x}"}, Args: []any{7, 60_000}}
	for name, c := range map[string]struct {
		old, new string
		call     Call
		on       string // "" is each server
		want     string
	}{
		"a key that is made": {"local best", "call('GET', key .. ':old')\nlocal best", one, "", "highest.lua:11: GET touches"},
		"a key in another slot": {"local best", "call('SET', 'made', 1, 'PX', ttl)\nlocal best", one, "",
			`highest.lua:11: SET touches "made", which is not in KEYS`},
		"a key behind pcall":     {"local best", "pcall(redis.call, 'GET', key .. ':old')\nlocal best", one, "", "highest.lua:11: GET touches"},
		"all keys":               {"local best", "call('DBSIZE')\nlocal best", one, "", "highest.lua:11: DBSIZE is about every key there is"},
		"no keys any more":       {"local best", "call('flushall')\nlocal best", one, "", "highest.lua:11: not done in a test"},
		"a key that is returned": {"return best", "return call('EXISTS', key, 'b{x}')", one, "", "highest.lua:16: EXISTS touches"},
		"digits that are lost": {"call('SET', key, score", "call('SET', key, 1764000000123456 .. ''", one, "standalone",
			"highest.lua:13: SET is passed the number 1.7640000001235e+15"},
		"digits inside of a text": {"call('SET', key, score", "call('SET', key, 'at:' .. tostring(1764000000123456) .. ':x'", one, "cluster",
			"highest.lua:13: SET is passed the number 1.7640000001235e+15"},
		"an argument's digits": {"call('SET', key, score", "call('SET', key, score .. ''", Call{Name: "one", Keys: one.Keys, Args: []any{1e15, 60_000}},
			"standalone", "highest.lua:13: SET is passed the number 1e+15"},
		"digits beside an argument": {"call('SET', key, score", "call('SET', key, ARGV[1] .. ' ' .. 1764000000123456",
			Call{Name: "one", Keys: one.Keys, Args: []any{"1e+15", 60_000}}, "standalone", "highest.lua:13: SET is passed the number 1.7640000001235e+15"},
		"digits in a reply": {"return best", "return {1, {'at=' .. 1764000000123456}}", one, "cluster",
			"highest.lua: it replied the number 1.7640000001235e+15"},
		"a fraction": {"call('SET', key, score", "call('SET', key, '' .. 0.00001", one, "standalone",
			"highest.lua:13: SET is passed the number 1e-05: string.format('%.17g', n)"},
		"a large number": {"call('SET', key, score", "call('SET', key, 2 ^ 70", one, "standalone",
			"highest.lua:13: SET is passed the number 1.1805916207174113e+21"},
		"no time to live": {", 'PX', ttl", "", one, "", "highest.lua:13: KEYS[1] is left without a time to live"},
		"one that is taken away": {"  best = score", "  best = score\n  call('PERSIST', key)", one, "",
			"highest.lua:15: KEYS[1] is left without a time to live"},
		"a hash without one": {"call('SET', key, score, 'PX', ttl)", "call('HSET', key, 'score', score)", one, "",
			"highest.lua:13: KEYS[1] is left without a time to live"},
		"a write to one without": {"call('SET', key, score, 'PX', ttl)", "call('INCRBY', key, 6)",
			Call{Name: "one", Keys: one.Keys, Args: one.Args, Prepare: holding(1, 0)}, "", "highest.lua:13: KEYS[1] is left without a time to live"},
		"an error after a write": {"  best = score", "  call('PERSIST', key)\n  error('odd')", one, "",
			"highest.lua:14: KEYS[1] is left without a time to live"},

		"an error":                              {"best = score\n", "best = score + nil\n", one, "", "highest.lua:14: "},
		"a refusal":                             {"call('GET', key)", "call('GET')", one, "", "highest.lua:11: "},
		"a wrong type":                          {"local best", "call('RPUSH', key, 1)\nlocal best", one, "", "highest.lua:12: WRONGTYPE"},
		"a global":                              {"local best", "best", one, "", "highest.lua:11: "},
		"a global that is not there":            {"if score", "local x = bset\nif score", one, "", "highest.lua:12: "},
		"an error reply of Redis":               {"return best", "return redis.pcall('HGET', key, 'x')", one, "", "highest.lua:16: WRONGTYPE"},
		"an error reply":                        {"return best", "return redis.error_reply('ERR odd')", one, "", "highest.lua: ERR odd"},
		"another reply":                         {"return best", "return {best, 'x', false}", withWant(one, []any{7, "y", nil}), "", "highest.lua: it replied"},
		"no error":                              {"return best", "return best", withFails(one, "odd"), "", `it replied 7 and no error with "odd"`},
		"another error":                         {"return best", "return redis.error_reply('ERR odd')", withFails(one, "even"), "", "ERR odd"},
		"an error that is made up":              {"return best", "return redis.error_reply('ERR odd ' .. best)", withFails(one, "odd"), "", "highest.lua: it returns the error \"ERR odd"},
		"syntax":                                {"then", "them", one, "standalone", "highest.lua:12: "},
		"an argument less":                      {"x", "x", Call{Keys: one.Keys, Args: []any{7}}, "", "highest.lua:5: the header has 2 arguments, and the call passes 1"},
		"an argument less than may be left out": {"-- ARGV[2]  ttl, in milliseconds", "-- ARGV[2]  ttl, in milliseconds; or nothing", Call{Keys: one.Keys}, "", "highest.lua:5: the header has 2 arguments, and the call passes 0"},
		"an argument more":                      {"x", "x", Call{Keys: one.Keys, Args: []any{7, 60_000, 1}}, "", "highest.lua:5: the header has 2 arguments, and the call passes 3"},
		"a key more":                            {"x", "x", Call{Keys: []string{"a{x}", "b{x}"}, Args: one.Args}, "", "highest.lua:3: the header has 1 keys"},
		"keys of two slots": {"x", "x", Call{Keys: []string{"a", "b"}, Args: one.Args}, "",
			"highest.lua:3: script: refused by configuration: highest.lua: the keys do not share one {hash tag}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := said(t, script.New("highest.lua", strings.Replace(good, c.old, c.new, 1)), c.call)
			for _, server := range []string{"miniredis", "standalone", "cluster"} {
				if c.on != "" && c.on != server {
					continue
				}
				if about := on(server, lines); !containing(about, c.want) {
					t.Errorf("on %s: got %q, want a fault with %q", server, lines, c.want)
				}
			}
		})
	}
}

func withWant(c Call, want any) Call     { c.Want = want; return c }
func withFails(c Call, part string) Call { c.Fails = part; return c }

func containing(lines []string, part string) bool {
	for _, line := range lines {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}

// TestTheClusterRefusesAnotherSlot: the cluster itself refuses keys that other nodes
// have.
func TestTheClusterRefusesAnotherSlot(t *testing.T) {
	t.Parallel()
	s := script.New("highest.lua", strings.Replace(good, "local best", "call('GET', ARGV[1])\nlocal best", 1))
	refused := 0
	for key := range 8 {
		lines := said(t, s, Call{Keys: []string{"{x}"}, Args: []any{key, 60_000}})
		if containing(on("standalone", lines), "non local key") {
			t.Errorf("the standalone server: got %q, want no key refused", lines)
		}
		for _, line := range on("cluster", lines) {
			if strings.HasPrefix(line, "highest.lua:11: ") && strings.Contains(line, "non local key") {
				refused++
			}
		}
	}
	if refused == 0 {
		t.Error("the cluster: got no key refused, want some")
	}
}

func TestNoCallIsNoTest(t *testing.T) {
	t.Parallel()
	if lines := said(t, highest); !containing(lines, "highest.lua: Run was given no calls") {
		t.Errorf("Run without a call: got %q, want a fault that says so", lines)
	}
}

// TestTheShimChangesNoReply sends replies of each shape with and without it.
func TestTheShimChangesNoReply(t *testing.T) {
	t.Parallel()
	for _, on := range targets {
		rdb := on.connect(t)
		for _, source := range []string{
			"return 1", "return 'text'", "return nil", "return false", "return true", "return 1.9", "return {}", "return {1, {'a', {2}}, 'b'}",
			"return {1, nil, 2}", "return redis.status_reply('FINE')", "return redis.call('PING')", "return redis.call('GET', KEYS[1])",
			"", "local x = 1", "local x\nlocal function f() x = redis.call('EXISTS', KEYS[1]) end\nf()\nreturn x + 2",
		} {
			run := func(text string) (any, error) {
				return rdb.Eval(context.Background(), text, []string{"neap:shim"}).Result()
			}
			plain, err := run(source)
			report, shimErr := run(shim(source, on.level))
			if shimErr != nil {
				t.Errorf("%s with the shim: got %v, want no error", source, shimErr)
				continue
			}
			w := &witness{script: script.New("x.lua", source), call: Call{Keys: []string{"neap:shim"}}}
			w.hear(report)
			if err == redis.Nil {
				err = nil
			}
			if err != nil || !same(plain, w.reply) {
				t.Errorf("%s on %s: got %#v with the shim, want %#v and no error, without it %v",
					source, on.name, w.reply, plain, err)
			}
		}
	}
}
