package scripttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// TestCommandsAreAsTheServerHasThem asks the server about each of its commands, with
// arguments that can be told apart: which of them are keys, and whether the command
// writes.
func TestCommandsAreAsTheServerHasThem(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Admin(t)
	commands, err := rdb.Do(t.Context(), "command").Slice()
	if err != nil || len(commands) < 200 {
		t.Fatalf("COMMAND: got %d commands, %v, want at least 200", len(commands), err)
	}
	fault := t.Errorf
	if info := rdb.Info(t.Context(), "server").Val(); !strings.Contains(info, "redis_version:7.0.") {
		fault = t.Logf // later ones have commands that commands.go need not know
	}
	asked := 0
	for _, one := range commands {
		info := one.([]any)
		name := strings.ToUpper(info[0].(string))
		flags := info[2].([]any)
		writing := slices.Contains(flags, any("write"))
		if known := slices.Contains(writes, name); known != writing && !slices.Contains(containers, name) && !slices.Contains(internal, name) {
			fault("%s: got writes %v, want %v as the server says", name, known, writing)
		}
		if slices.Contains(flags, any("noscript")) || slices.Contains(flags, any("movablekeys")) || slices.Contains(containers, name) ||
			slices.Contains(internal, name) || name == "SPUBLISH" { // its channel decides on the slot, and is no key
			continue
		}
		args := []string{name, "a", "b", "c", "d", "e", "f"}
		want := between(args, int(info[3].(int64)), int(info[4].(int64)), int(info[5].(int64)))
		if got := keysOf(args); !slices.Equal(got, want) {
			fault("%v: got the keys %q, want %q as the server says", args, got, want)
		}
		asked++
	}
	if asked < 150 {
		t.Errorf("commands compared: got %d, want at least 150", asked)
	}
}

var (
	// containers are commands whose flags and keys depend on the subcommand.
	containers = words("FUNCTION MEMORY OBJECT XGROUP XINFO")
	// internal commands are not for scripts.
	internal = words("ASKING PFDEBUG PFSELFTEST RESTORE-ASKING")
)

func between(args []string, first, last, step int) (keys []string) {
	if last < 0 {
		last += len(args)
	}
	for i := first; first > 0 && i <= last; i += step {
		keys = append(keys, args[i])
	}
	return keys
}

// TestMovingKeysAreFound compares with the server's answer commands whose other arguments
// say where their keys are.
func TestMovingKeysAreFound(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Admin(t)
	for _, text := range []string{
		"ZUNIONSTORE out 2 a b WEIGHTS 1 2", "ZINTERSTORE out 1 a", "ZDIFFSTORE out 2 a b", "ZUNION 2 a b", "ZINTER 2 a b WITHSCORES",
		"ZDIFF 2 a b", "SINTERCARD 2 a b LIMIT 3", "ZINTERCARD 2 a b", "LMPOP 2 a b LEFT", "ZMPOP 1 a MIN", "BLMPOP 0 2 a b LEFT",
		"BZMPOP 0 1 a MIN", "XREAD COUNT 2 STREAMS a b 0 0", "XREADGROUP GROUP g c STREAMS a 0", "SORT a BY x STORE out", "SORT a",
		"GEORADIUS a 1 2 3 m STORE out", "GEORADIUSBYMEMBER a b 3 m STOREDIST out", "OBJECT ENCODING a", "XGROUP CREATE a g 0",
		"XINFO STREAM a", "MEMORY USAGE a", "BLPOP a b 0", "BZPOPMIN a b 0", "MSET a 1 b 2", "BITOP AND out a b", "get a",
		"BLMOVE a b LEFT RIGHT 0", "BRPOPLPUSH a b 0",
	} {
		args := strings.Fields(text)
		asked := []any{"command", "getkeys"}
		for _, a := range args {
			asked = append(asked, a)
		}
		want, err := redis.NewStringSliceResult(rdb.Do(t.Context(), asked...).StringSlice()).Result()
		if err != nil {
			t.Errorf("COMMAND GETKEYS of %s: got %v, want keys", text, err)
			continue
		}
		if got := keysOf(args); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: got the keys %q, want %q as the server says", text, got, want)
		}
	}
	for _, text := range []string{"PING", "TIME", "publish a b", "XREAD COUNT 2", "LMPOP", "LMPOP x"} {
		if got := keysOf(strings.Fields(text)); len(got) > 0 {
			t.Errorf("%s: got the keys %q, want none", text, got)
		}
	}
}
