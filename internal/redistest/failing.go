package redistest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/lua"
)

// Failing is a script whose n-th command fails with "ERR made to fail". Its
// lines keep their numbers.
func Failing(source string, n int) string {
	return fmt.Sprintf("local real, n = redis, 0; local function other(f, fail) return function(...) "+
		"n = n + 1; if n == %d then return fail('ERR made to fail') end; return f(...) end end; "+
		"local redis = {call = other(real.call, error), pcall = other(real.pcall, real.error_reply), "+
		"error_reply = real.error_reply} %s", n, source)
}

// Attempt is a call of a script that may fail half way.
type Attempt struct {
	Source string
	Keys   []string
	Args   []any
}

// FailEach makes one command after the other fail until the script runs
// through, each time from the same state. After a failure the answer is an
// error, and no key is left without a time to live that had one or is new.
// check, where it is not nil, looks at each failure.
func FailEach(tb testing.TB, admin *redis.Client, a Attempt, before []Saved, where string, check func(n int)) {
	tb.Helper()
	const most = 60
	through, again := 0, 0
	for n := 1; through < 3; n++ {
		if n == most {
			tb.Fatalf("%s: it still fails at command %d, want it to run through", where, n)
		}
		pipe := admin.Pipeline()
		restored := restore(tb.Context(), pipe, before)
		answer := pipe.Eval(tb.Context(), Failing(a.Source, n), a.Keys, a.Args...)
		var lives []*redis.DurationCmd
		for _, key := range a.Keys {
			lives = append(lives, pipe.PTTL(tb.Context(), key))
		}
		_, _ = pipe.Exec(tb.Context()) // each command has its own error
		mortal := restored(tb)
		reply, err := answer.Result()
		switch {
		case err == nil, errors.Is(err, redis.Nil):
			through++
		case !strings.Contains(err.Error(), "made to fail"):
			tb.Fatalf("%s: command %d: got %v, want no error, or that it was made to fail", where, n, err)
		case through > 0:
			if again++; again == 3 {
				tb.Fatalf("%s: command %d failed, and one before it failed unnoticed", where, n)
			}
			n, through = 0, 0 // a key may have ended before one of the two runs, which then has fewer commands
		case check != nil:
			check(n)
		}
		for i, key := range a.Keys {
			if lives[i].Val() == -1 && mortal[key] {
				tb.Errorf("%s: after command %d failed (%v, %v) a key never expires, want a time to live",
					where, n, reply, err)
			}
		}
		if err == nil && n == 1 {
			tb.Errorf("%s: no command failed, want one that does", where)
		}
	}
}

// AllFailed fails the test if the map lacks a script of the library whose file has one of
// the prefixes.
func AllFailed(tb testing.TB, seen map[string]bool, prefixes ...string) {
	tb.Helper()
	for _, prefix := range prefixes {
		files, err := fs.Glob(lua.FS, prefix+"*.lua")
		if err != nil || len(files) == 0 {
			tb.Fatalf("the scripts %s*.lua: got %q, %v, want at least one", prefix, files, err)
		}
		for _, file := range files {
			if !seen[file] {
				tb.Errorf("%s was not made to fail: give this test a case for it", file)
			}
		}
	}
}

// Saved is a key as it was.
type Saved struct {
	Key, Value string        // as DUMP has it; "" where there was none
	TTL        time.Duration // below 0 where there was none
}

// Save saves keys.
func Save(t *testing.T, admin *redis.Client, keys []string) (all []Saved) {
	t.Helper()
	for _, key := range keys {
		value, err := admin.Dump(t.Context(), key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		ttl := admin.PTTL(t.Context(), key).Val()
		if ttl == 0 || ttl == -2 { // it has ended meanwhile
			value = ""
		}
		all = append(all, Saved{key, value, ttl})
	}
	return all
}

// Restore puts the keys back, and says which of them may not be immortal.
func Restore(tb testing.TB, admin *redis.Client, all []Saved) map[string]bool {
	tb.Helper()
	pipe := admin.Pipeline()
	restored := restore(tb.Context(), pipe, all)
	_, _ = pipe.Exec(tb.Context()) // each command has its own error
	return restored(tb)
}

// restore adds to a pipeline what puts the keys back. When the pipeline has run, restored checks it, and says which
// keys may not be immortal.
func restore(ctx context.Context, pipe redis.Pipeliner, all []Saved) (restored func(testing.TB) map[string]bool) {
	mortal, commands := map[string]bool{}, []redis.Cmder{}
	for _, s := range all {
		mortal[s.Key] = s.Value == "" || s.TTL > 0
		if s.Value == "" {
			commands = append(commands, pipe.Del(ctx, s.Key))
		} else {
			commands = append(commands, pipe.RestoreReplace(ctx, s.Key, max(s.TTL, 0), s.Value))
		}
	}
	return func(tb testing.TB) map[string]bool {
		tb.Helper()
		for _, c := range commands {
			if c.Err() != nil {
				tb.Fatal(c.Err())
			}
		}
		return mortal
	}
}
