package scripttest

import (
	"slices"
	"strings"
	"testing"
)

func TestCallsAreFound(t *testing.T) {
	t.Parallel()
	source := `local a, call, pcall = 1 + (2), redis.call, redis.pcall -- redis.call('NO')
--[[ redis.call('NO')
]] local text = "redis.call('NO')" .. [==[ redis.call('NO') ]]
]==]
redis.call('GET', (1))
redis . pcall ( "set", 'it\'s', KEYS[1])
call([[DEL]], key)
pcall(name, other.call('NO'), function() return call('TTL', f(1), ')') end)
local function f() return redis.call('INCR', key) + 1 end
local odd, other = f(redis.call('PTTL', key), 2), redis.call
other('ECHO')
local none = f(redis.call)
none('NO')
return (call('TIME'))`
	var got []string
	for _, c := range calls(source) {
		got = append(got, strings.Repeat("r", min(c.returns, 1))+c.command+":"+source[c.to-1:c.to]+string(rune('0'+c.line)))
	}
	want := []string{"GET:)5", "SET:)6", "DEL:)7", ":)8", "rTTL:)8", "rINCR:)9", "PTTL:):", "ECHO:);", "TIME:)>"}
	if !slices.Equal(got, want) {
		t.Errorf("the calls of the source: got %q, want %q", got, want)
	}
}

func TestUntailed(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"return redis.call('GET', f(1))":                         "return (redis.call('GET', f(1)))",
		"return redis.call('GET', f(1)) or 1":                    "return (redis.call('GET', f(1))) or 1",
		"local c = redis.call\nreturn c('A', redis.call('B')).x": "local c = redis.call\nreturn (c('A', redis.call('B'))).x",
		"return f(redis.call('GET'))":                            "return f(redis.call('GET'))",
		"return 'redis.call()'":                                  "return 'redis.call()'",
		"return redis.call('GET'":                                "return (redis.call('GET')",
		"x = redis.call('GET')":                                  "x = redis.call('GET')",
	} {
		if got := untailed(source); got != want {
			t.Errorf("untailed of %q: got %q, want %q", source, got, want)
		}
	}
}

func TestCodeKeepsItsPlaces(t *testing.T) {
	t.Parallel()
	source := "a -- b\n'c -- d' --[[ e\nf ]] g 1e5 \"\\\"--\" [[\n--]] --"
	want := "a     \n               \n     g 1e5          \n       "
	if got := code(source); got != want {
		t.Errorf("the code of the source: got %q, want %q", got, want)
	}
}

func TestANameIsFound(t *testing.T) {
	t.Parallel()
	source := "-- odd\nlocal a = 'odd' .. b.odd\nc:odd()\nreturn '.' .. odd"
	if line := lineOfName(source, "odd"); line != 4 {
		t.Errorf("the name odd: got line %d, want 4", line)
	}
	if line := lineOfName(source, "even"); line != 0 {
		t.Errorf("the name even: got line %d, want 0", line)
	}
}

// FuzzLex checks that lex ends for every source, and that each token is where it says.
func FuzzLex(f *testing.F) {
	for _, seed := range []string{good, "'", "[[", "--[==[", "\\", "redis.call(", "local a,", "local call = redis.call", "return redis.call)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		for _, tok := range lex(source) {
			if tok.from < 0 || tok.to > len(source) || tok.to <= tok.from {
				t.Fatalf("got the token %+v, want it not empty and within %d bytes", tok, len(source))
			}
		}
		_, _ = untailed(source), headerFaults(source)
	})
}

func TestNumbersAreNoWords(t *testing.T) {
	t.Parallel()
	var words, others []string
	for _, tok := range lex("x1 = 0x1F + 1.5e3 - _y_2") {
		if tok.kind == word {
			words = append(words, tok.text)
		} else {
			others = append(others, tok.text)
		}
	}
	if want := []string{"x1", "_y_2"}; !slices.Equal(words, want) {
		t.Errorf("the words: got %q, want %q", words, want)
	}
	if want := []string{"=", "0x1F", "+", "1.5e3", "-"}; !slices.Equal(others, want) {
		t.Errorf("the other tokens: got %q, want %q", others, want)
	}
}
