package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestBeginInAStoppedServerIsUndone stops the server, lets calls fail, and lets the
// server run again. It then grants claims that no caller gets. They are free within two
// seconds, count as no attempt, and are not in doubt.
func TestBeginInAStoppedServerIsUndone(t *testing.T) {
	t.Parallel()
	storetest.EachPausedServer(t, func(t *testing.T, srv *storetest.PausedServer) {
		prefix := srv.Prefix(t)
		rdb := srv.Connected(t)
		undos := &counted{UniversalClient: rdb, sha: abandonSHA}
		other := map[string]*idempotency.Guard{}
		var guards []*idempotency.Guard
		calls := map[string]func(context.Context) error{}
		for policy, its := range policies {
			g := guardOf(t, undos, prefix, its, &idempotency.Options{Budget: srv.Budget})
			guards = append(guards, g)
			other[policy] = guardOf(t, srv.Client(t), prefix, its, nil)
			warm(t, other[policy])
			calls[policy+"-begin"] = func(ctx context.Context) error { _, err := g.Begin(ctx, policy+"-begin", ""); return err }
			calls[policy+"-await"] = func(ctx context.Context) error { _, err := g.Await(ctx, policy+"-await", ""); return err }
			calls[policy+"-do"] = func(ctx context.Context) error { _, err := g.Do(ctx, policy+"-do", unrun(t)); return err }
		}
		srv.Fail(t, calls, func() {
			redistest.Await(t, soon, "attempts to undo each", func() bool { return undos.sent.Load() >= int64(len(calls)) })
		})
		redistest.Await(t, soon, "a grant", func() bool { return redistest.CommandStats(t, srv.Admin(t))["set"].Calls > 0 })
		for key := range calls {
			policy, _, _ := strings.Cut(key, "-")
			isFree(t, other[policy], key)
		}
		srv.Undone(t)
		for _, g := range guards {
			if s := g.Stats(); s.Begun != 0 || s.Failed+s.Canceled != 3 {
				t.Errorf("got stats %+v, want none begun, and 3 failed or canceled", s)
			}
		}
	})
}

// TestBeginOfAServerThatDiesIsUndone stops the server when it has granted a claim, and
// starts it with all its data.
func TestBeginOfAServerThatDiesIsUndone(t *testing.T) {
	t.Parallel()
	for policy, its := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t, "--appendonly", "yes", "--appendfsync", "always")
			prefix := srv.Prefix(t)
			since := redistest.NewSince(t)
			dying := &redistest.LossyClient{UniversalClient: srv.Client(t), SHA: beginSHA}
			g := guardOf(t, dying, prefix, its, &idempotency.Options{Budget: awayBudget})
			warm(t, g)
			dying.Next(func() { srv.Stop(t) })
			if run, err := g.Begin(t.Context(), "key", ""); run.Claim != nil || !isScripts(err) {
				t.Fatalf("got %+v, %v, want an error of a script", run, err)
			}
			srv.Start(t)
			since.Back()
			if r, err := srv.Admin(t).Get(t.Context(), nameOf(prefix, "key")).Result(); err != nil {
				t.Errorf("the server kept %q, %v, want what it had granted", r, err)
			}
			isFree(t, guardOf(t, srv.Client(t), prefix, its, nil), "key")
			since.Undone(t)
		})
	}
}

func isScripts(err error) bool {
	var failure *script.Error
	return errors.As(err, &failure)
}

// TestAnUnheardTakeoverIsInDoubtAgain: with Reconcile, a caller takes over a run in doubt
// and gets no reply. Afterwards no more is known about that run than before.
func TestAnUnheardTakeoverIsInDoubtAgain(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		asked := 0
		policy := idempotency.Reconcile{
			Find: func(_ context.Context, c *idempotency.Claim) (idempotency.Outcome, error) {
				asked++
				if c.Attempt() != 2 {
					t.Errorf("Reconcile was asked at attempt %d, want 2", c.Attempt())
				}
				return idempotency.DoneWith([]byte("booked")), nil
			},
		}
		slow := &redistest.DelayedClient{UniversalClient: rdb, SHA: beginSHA, Most: 1000}
		g := guardOf(t, slow, prefix, policy, &idempotency.Options{Budget: 2 * time.Second})
		other := guardOf(t, rdb, prefix, policy, nil)
		warm(t, other)
		dead(t, admin, prefix, "key")
		if _, err := g.Begin(t.Context(), "key", ""); !errors.Is(err, script.ErrMaybeExecuted) {
			t.Fatalf("Begin: got %v, want %v", err, script.ErrMaybeExecuted)
		}
		for range 2 {
			slow.Deliver(t)
			redistest.Await(t, soon, "it to be in doubt", func() bool {
				r, err := other.Inspect(t.Context(), "key")
				return err == nil && r.State == idempotency.Doubtful && r.Attempt == 1
			})
		}
		if asked != 0 {
			t.Errorf("Reconcile was asked %d times, want 0", asked)
		}
		replayed(t, other, "key", "", "booked")
	})
}

// TestBeginThatOvertakesItsUndoIsUndone delivers a begin after some attempts to undo it,
// and once more after the attempt that undid it.
func TestBeginThatOvertakesItsUndoIsUndone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		undos := &counted{UniversalClient: rdb, sha: abandonSHA}
		slow := &redistest.DelayedClient{UniversalClient: undos, SHA: beginSHA, Most: 1000}
		g, other := guard(t, slow, prefix, &idempotency.Options{Budget: 2 * time.Second}), guard(t, rdb, prefix, nil)
		warm(t, other)
		if run, err := g.Begin(t.Context(), "key", ""); run.Claim != nil || !errors.Is(err, script.ErrMaybeExecuted) {
			t.Fatalf("got %+v, %v, want an error of a script", run, err)
		}
		redistest.Await(t, soon, "the first attempts", func() bool { return undos.ended.Load() > 2 })
		for range 3 {
			slow.Deliver(t)
			redistest.Await(t, soon, "it to be given back", func() bool {
				r, err := other.Inspect(t.Context(), "key")
				return err == nil && r.State == idempotency.Free && r.Attempt == 0
			})
		}
		c := begin(t, other, "key", "")
		if c.Attempt() != 1 || c.Conclude(t.Context(), idempotency.DoneWith(nil)) != nil {
			t.Errorf("got attempt %d, want 1 and no error of Conclude", c.Attempt())
		}
	})
}

// counted counts the calls of a script.
type counted struct {
	redis.UniversalClient
	sha         string
	sent, ended atomic.Int64
}

func (c *counted) Process(ctx context.Context, cmd redis.Cmder) error {
	if strings.Contains(cmd.String(), c.sha) {
		c.sent.Add(1)
		defer c.ended.Add(1)
	}
	return c.UniversalClient.Process(ctx, cmd)
}

// TestBeginThatComesAfterTheEndIsUndone: a begin was repeated and granted. Its first call
// is delivered when the claim has been abandoned.
func TestBeginThatComesAfterTheEndIsUndone(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for _, unheard := range []bool{false, true} { // whether the reply to the end is lost
			key := fmt.Sprint("key-", unheard)
			slow := &redistest.DelayedClient{UniversalClient: rdb, SHA: beginSHA, Most: 1}
			client := &redistest.LossyClient{UniversalClient: slow, SHA: abandonSHA}
			g, other := guard(t, client, prefix, nil), guard(t, rdb, prefix, nil)
			warm(t, other)
			c := begin(t, g, key, "")
			if unheard {
				client.Next(func() {})
			}
			if err := c.Conclude(t.Context(), idempotency.NothingDone()); err != nil {
				t.Error(err)
			}
			if err := begin(t, other, key, "").Conclude(t.Context(), idempotency.NothingDone()); err != nil { // the record then has the name of this owner
				t.Error(err)
			}
			slow.Deliver(t)
			redistest.Await(t, soon, "it to be given back", func() bool {
				r, err := other.Inspect(t.Context(), key)
				return err == nil && r.State == idempotency.Free
			})
			if c := begin(t, other, key, ""); c.Conclude(t.Context(), idempotency.DoneWith(nil)) != nil {
				t.Error("Complete failed, want no error")
			}
		}
	})
}

// TestBeginIsAskedAgain loses a reply. The next call has the same owner, so it finds its
// own claim, and knows when its lease may have begun.
func TestBeginIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lease, pause = 6 * time.Second, 900 * time.Millisecond
		m, prefix := inBubble(t), redistest.Prefix(t)
		rdb := &redistest.CutClient{Client: m}
		client := &redistest.LossyClient{UniversalClient: rdb, SHA: beginSHA}
		g := guard(t, client, prefix, &idempotency.Options{Lease: lease})
		warm(t, g)
		client.Next(func() { time.Sleep(pause) })
		c := begin(t, g, "key", "")
		if c.Attempt() != 1 {
			t.Errorf("got attempt %d, want 1", c.Attempt())
		}
		rdb.Cut("refused")
		<-c.Context().Done()
		record := strings.Fields(m.Get(t.Context(), nameOf(prefix, "key")).Val())
		ends, err := strconv.ParseInt(record[3], 10, 64)
		if left := time.Until(time.UnixMilli(ends)); err != nil || left <= 0 {
			t.Errorf("when the holder knew of its loss: got %v left of the lease in Redis, %v, want some", left, err)
		}
		if !errors.Is(c.Err(), idempotency.ErrExpired) {
			t.Errorf("got the claim's error %v, want %v", c.Err(), idempotency.ErrExpired)
		}
		time.Sleep(lease) // a renewal may be on its way
	})
}

// TestAnswersAfterTheLease is about a process that slept while it asked. It must not run,
// and what Redis granted is given back.
func TestAnswersAfterTheLease(t *testing.T) {
	t.Parallel()
	const sleep = 700 * time.Millisecond
	for policy, its := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb := inBubble(t)
				opts := &idempotency.Options{Lease: sleep, Budget: 5 * time.Second}
				g, err := idempotency.New(storetest.Direct(t, rdb, redistest.Prefix(t)), "test", its, opts)
				if err != nil {
					t.Fatal(err)
				}
				warm(t, g)
				rdb.AddHook(&redistest.SlowReply{For: sleep})
				if run, err := g.Begin(t.Context(), "key", ""); run.Claim != nil || !errors.Is(err, idempotency.ErrExpired) {
					t.Errorf("got a claim %t, %v, want none, and %v", run.Claim != nil, err, idempotency.ErrExpired)
				}
				if got := g.Stats(); got != (idempotency.Stats{Failed: 1}) {
					t.Errorf("got stats %+v, want 1 failed and nothing else", got)
				}
				if r, err := g.Inspect(t.Context(), "key"); err != nil || r.State != idempotency.Free || r.Attempt != 0 {
					t.Errorf("got %+v, %v, want it free with 0 attempts", r, err)
				}
			})
		})
	}
}

// TestAbandonWithALostReplyReportsNoLoss: when Abandon asks again, another caller has
// begun, as it may.
func TestAbandonWithALostReplyReportsNoLoss(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		other := guard(t, rdb, prefix, nil)
		between := &redistest.LossyClient{UniversalClient: rdb, SHA: abandonSHA}
		g := guard(t, between, prefix, nil)
		warm(t, other)
		for key, c := range map[string]struct {
			then func()
			want error
		}{
			"nothing": {func() {}, nil},
			"begun":   {func() { begin(t, other, "begun", "") }, script.ErrMaybeExecuted},
		} {
			claim := begin(t, g, key, "")
			between.Next(c.then)
			if err := claim.Conclude(t.Context(), idempotency.NothingDone()); !errors.Is(err, c.want) || errors.Is(err, idempotency.ErrLost) {
				t.Errorf("%s: got %v, want %v, and not %v", key, err, c.want, idempotency.ErrLost)
			}
			if s := g.Stats(); s.Overtaken != 0 || s.Lost != 0 {
				t.Errorf("%s: got stats %+v, want none overtaken or lost", key, s)
			}
		}
	})
}
