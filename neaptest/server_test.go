package neaptest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	redisserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// TestCommandsAreAsTheServerHasThem compares with COMMAND of a server.
func TestCommandsAreAsTheServerHasThem(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Admin(t)
	commands, err := rdb.Do(t.Context(), "command").Slice()
	if err != nil || len(commands) < 200 {
		t.Fatalf("COMMAND: got %d commands, %v, want 200 at least", len(commands), err)
	}
	fault := t.Errorf
	if info := rdb.Info(t.Context(), "server").Val(); !strings.Contains(info, "redis_version:7.0.") {
		fault = t.Logf // later ones have commands that miniredis lacks
	}
	asked := 0
	for _, one := range commands {
		info := one.([]any)
		name := strings.ToUpper(info[0].(string))
		flags := info[2].([]any)
		write, grows := slices.Contains(flags, any("write")), slices.Contains(flags, any("denyoom"))
		if slices.Contains([]string{"PFDEBUG", "RESTORE-ASKING"}, name) { // not for users
			continue
		}
		if got := slices.Contains(growing, name); got != (write && grows) {
			fault("%s: got growing %v, want %v as the server says", name, got, write && grows)
		}
		if got := slices.Contains(writing, name); got != (write && !grows) {
			fault("%s: got writing %v, want %v as the server says", name, got, write && !grows)
		}
		if write {
			asked++
		}
	}
	if asked < 90 {
		t.Errorf("got %d commands that write, want 90 at least", asked)
	}
}

// TestAFullRedisRefusesAsAServerDoes makes the same calls to a full server: of each script that
// Redis may refuse, and of plain commands.
func TestAFullRedisRefusesAsAServerDoes(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--maxmemory-policy", "noeviction")
	admin := srv.Admin(t)
	outcomes := func(rdb *redis.Client, fill func()) (said []string) {
		ctx := context.Background()
		rdb.Eval(ctx, source("guard_begin.lua"), []string{"{done}"}, "o", "print", "60000 90000 retry")
		rdb.Set(ctx, "{plain}", "v", 0)
		fill()
		for _, c := range []struct {
			file string
			key  string
			args []any
		}{
			{"limit_bucket.lua", "{a}", []any{3, 1, 3, 1}},
			{"limit_fast.lua", "{a}", []any{3, 2, 3, 1000, 60_000, 1}},
			{"limit_window.lua", "{a}", []any{2, 60_000, 2, 1}},
			{"limit_sliding.lua", "{a}", []any{2, 60_000, 2, 1}},
			{"limit_log.lua", "{a}", []any{3, 60_000_000, 120_000, 1}},
			{"inflight_acquire.lua", "{a}", []any{"a", 2, 30_000_000, 60_000, "", ""}},
			{"lock_acquire.lua", "{a}", []any{"o", "h", 60_000, 90_000, ""}},
			{"once_start.lua", "{a}", []any{"h", 60_000, 90_000, 9e14, "again", ""}},
			{"guard_begin.lua", "{a}", []any{"o", "print", "60000 90000 retry"}},
			{"guard_complete.lua", "{done}", []any{"o", "done", 90_000, 1764000000123456, 1, "print", "result"}},
			{"guard_begin.lua", "{done}", []any{"p", "print", "60000 90000 retry"}},
			{"stock_open.lua", "{a}", []any{5, 9e14, 7_200_000, "t"}},
		} {
			reply, err := rdb.Eval(ctx, source(c.file), []string{c.key}, c.args...).Result()
			if c.file == "guard_begin.lua" && err == nil {
				reply = strings.HasSuffix(fmt.Sprint(reply), "result]")
			}
			said = append(said, fmt.Sprintf("%s %s: %v, %v", c.file, c.key, reply, err))
		}
		for _, command := range [][]any{{"set", "{a}", "v"}, {"hset", "{a}", "f", "v"}, {"get", "{plain}"}, {"del", "{plain}"}, {"pexpire", "{done}", 1000}} {
			reply, err := rdb.Do(ctx, command...).Result()
			said = append(said, fmt.Sprintf("%v: %v, %v", command[0], reply, err))
		}
		return said
	}
	want := outcomes(admin, func() { must(admin.ConfigSet(t.Context(), "maxmemory", "1").Result())(t) })
	refused := 0
	play(t, func(t *testing.T, r *Redis) {
		got := outcomes(r.Client(), r.Fill)
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("got %s, want %s as a server says", got[i], want[i])
			}
			if strings.Contains(want[i], "OOM") {
				refused++
			}
		}
	})
	if refused < 10 {
		t.Errorf("got %d calls that were refused, want 10 at least", refused)
	}
}

func source(file string) string { return script.FromFS(lua.FS, file).Source() }

// TestFill has a full Redis refuse a limiter: the call is known not to have run.
func TestFill(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		l := limiter(t, r.Client(), 1, store.FailClosed)
		r.Fill()
		if _, err := l.Take(t.Context(), "ann"); !errors.Is(err, script.ErrNotExecuted) {
			t.Errorf("got %v, want ErrNotExecuted", err)
		}
		r.Restore()
		if d, err := l.Take(t.Context(), "ann"); err != nil || !d.Allowed {
			t.Errorf("after Restore: got %+v, %v, want the permit", d, err)
		}
	})
}

// TestEachScriptIsKnown finds each by its SHA, and by its text.
func TestEachScriptIsKnown(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(lua.FS, "*.lua")
	if err != nil || len(files) < 30 {
		t.Fatalf("got %d scripts, %v, want 30 at least", len(files), err)
	}
	play(t, func(t *testing.T, r *Redis) {
		rdb := r.Client()
		for _, file := range files {
			rdb.EvalSha(t.Context(), script.FromFS(lua.FS, file).SHA(), []string{"{a}"})
			rdb.Eval(t.Context(), source(file), []string{"{a}"})
			if got := r.serve().take(); !slices.Equal(got, []string{file, file}) {
				t.Errorf("%s: got the scripts %q, want it twice", file, got)
			}
		}
	})
}

// TestTransactions run their scripts, too.
func TestTransactions(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		rdb := r.Client()
		var reply *redis.Cmd
		_, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			reply = p.Eval(t.Context(), "return redis.call('INCR', KEYS[1])", []string{"n"})
			return nil
		})
		if got, _ := reply.Int(); err != nil || got != 1 {
			t.Errorf("got %v, %v, want 1", reply, err)
		}
	})
}

// TestAServerThatEndsRunsNothing has a script come late, which would find no server.
func TestAServerThatEndsRunsNothing(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.end()
	var reply bytes.Buffer
	late := redisserver.NewPeer(bufio.NewWriter(&reply))
	if done := s.hook(late, "EVAL", "return redis.call('PING')", "0"); !done || !late.Closed() || reply.Len() > 0 {
		t.Errorf("got done %v, closed %v and the reply %q, want a closed connection alone", done, late.Closed(), reply.String())
	}
}
