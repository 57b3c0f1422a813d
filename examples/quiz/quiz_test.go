package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/script/scripttest"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestAnswerLua(t *testing.T) {
	t.Parallel()
	keys := func(player, day string) []string { return (&Campaign{name: "spring"}).keys(player, day) }
	call := func(player, question string, points int, day string) scripttest.Call {
		return scripttest.Call{
			Name: fmt.Sprint(player, " answers ", question), Keys: keys(player, day),
			Args: []any{player, question, points, 10, 12, 15, 2, 60_000, 90_000},
		}
	}
	reply := func(c scripttest.Call, want ...any) scripttest.Call {
		c.Want = want
		return c
	}
	scripttest.Run(t, answer,
		reply(call("ann", "wrong", 0, "1"), 1, 0, 0, 0, 0, 0),
		reply(call("ann", "a", 7, "1"), 1, 7, 7, 7, 0, 1),
		reply(call("ann", "a", 7, "1"), 0, 7, 7, 7, 0, 1),
		reply(call("ann", "b", 7, "1"), 1, 3, 10, 10, 0, 1),
		reply(call("ann", "c", 7, "1"), 1, 0, 10, 10, 0, 1),
		reply(call("bob", "a", 7, "1"), 1, 7, 7, 7, 0, 2),
		reply(call("eve", "a", 1, "1"), 1, 1, 1, 1, 0, 0),
		reply(call("eve", "b", 8, "1"), 1, 8, 9, 9, 0, 2),
		reply(call("bob", "b", 1, "1"), 1, 1, 8, 8, 0, 0),
		reply(call("ann", "d", 2, "2"), 1, 2, 2, 12, 1, 1),
		reply(call("ann", "e", 3, "2"), 1, 3, 5, 15, 2, 1),
	)
}

// TestTheProgram runs it as its reader would, on each kind of Redis.
func TestTheProgram(t *testing.T) {
	t.Parallel()
	answers := fmt.Sprint("-answers=", redistest.Ops(50_000))
	one := redistest.NewStandalone(t)
	for name, args := range map[string][]string{
		"embedded":   {"-answers=500"},
		"standalone": {"-redis", one.AdminURL(), answers},
		"cluster":    {"-redis", redistest.Cluster(t).Nodes()[0].AdminURL(), answers},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := run(t.Context(), args, &out); err != nil {
				t.Error(err)
			}
			if !strings.Contains(out.String(), "are as recounted\n") {
				t.Errorf("the program said %q, want it to say that all are as recounted", out.String())
			}
			if left := one.Admin(t).DBSize(t.Context()).Val(); name == "standalone" && left > 0 {
				t.Errorf("the program left %d keys, want 0", left)
			}
		})
	}
}

// TestLostRepliesCountOnce loses replies on the way, so that answers are sent
// again.
func TestLostRepliesCountOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := srv.Proxy(t)
	rdb := srv.Admin(t, func(o *redis.Options) { o.Dialer, o.ContextTimeoutEnabled = p.Dial, true })
	c := campaign(t, rdb)
	var err error
	if c.runner, err = script.NewRunner(rdb, &script.Options{Budget: time.Minute}); err != nil { // of a machine that stands still
		t.Fatal(err)
	}
	p.Lose(redistest.EOF, 50, "evalsha")
	if err := play(t.Context(), c, random(redistest.Ops(5_000)), io.Discard); err != nil {
		t.Error(err)
	}
	if p.Lost() == 0 {
		t.Error("no reply was lost, want some")
	}
}

func campaign(t *testing.T, rdb redis.UniversalClient) *Campaign {
	t.Helper()
	c, err := New(rdb, strings.ReplaceAll(redistest.Prefix(t), ":", "-"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAllKeysAreInOneSlot asks the cluster.
func TestAllKeysAreInOneSlot(t *testing.T) {
	t.Parallel()
	rdb := redistest.Cluster(t).Admin(t)
	c := campaign(t, rdb)
	if err := play(t.Context(), c, random(200), io.Discard); err != nil {
		t.Fatal(err)
	}
	keys, err := c.all(t.Context())
	if err != nil || len(keys) < 50 {
		t.Fatalf("got %d keys, %v, want 50 at least", len(keys), err)
	}
	slots := map[int64]bool{}
	for _, key := range keys {
		slots[rdb.ClusterKeySlot(t.Context(), key).Val()] = true
	}
	if len(slots) != 1 {
		t.Errorf("%d keys are in %d slots, want one", len(keys), len(slots))
	}
}

// TestEachDisagreementIsFound changes one figure of Redis behind a good play.
func TestEachDisagreementIsFound(t *testing.T) {
	t.Parallel()
	rdb := redistest.Standalone(t).Admin(t)
	ctx := context.Background()
	for name, change := range map[string]struct {
		do   func(player, day, board string) error
		want string
	}{
		"total":  {func(player, _, _ string) error { return rdb.HIncrBy(ctx, player, "total", 1).Err() }, "total and prize"},
		"prize":  {func(player, _, _ string) error { return rdb.HIncrBy(ctx, player, "prize", 1).Err() }, "total and prize"},
		"day":    {func(_, day, _ string) error { return rdb.Incr(ctx, day).Err() }, "points on"},
		"board":  {func(_, _, board string) error { return rdb.ZIncrBy(ctx, board, 1, "player-0").Err() }, "the board is"},
		"place":  {func(_, _, board string) error { return rdb.ZAdd(ctx, board, redis.Z{Member: "nobody"}).Err() }, "the board is"},
		"ttl":    {func(player, _, _ string) error { return rdb.Persist(ctx, player).Err() }, "never expires"},
		"record": {func(player, _, _ string) error { return rdb.PExpire(ctx, player, keepDay).Err() }, "expires before the scores"},
		"jitter": {func(_, _, board string) error {
			campaign := strings.TrimSuffix(board, "board")
			for _, day := range rdb.Keys(ctx, campaign+"day:*").Val() {
				if err := rdb.PExpire(ctx, day, keepDay).Err(); err != nil {
					return err
				}
			}
			return nil
		}, "expire within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := campaign(t, rdb)
			all := append(random(600), Answer{"player-0", "sure", "2026-11-20", 5})
			if err := play(ctx, c, all, io.Discard); err != nil {
				t.Fatal(err)
			}
			keys := c.keys("player-0", "2026-11-20")
			if err := change.do(keys[0], keys[1], keys[2]); err != nil {
				t.Fatal(err)
			}
			if err := c.compare(ctx, recount(all)); err == nil || !strings.Contains(err.Error(), change.want) {
				t.Errorf("%v, want %q", err, change.want)
			}
			if name == "ttl" {
				rdb.Expire(ctx, keys[0], time.Minute)
			}
		})
	}
}
