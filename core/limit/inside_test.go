package limit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// TestWithoutRoomAConclusionIsDropped at once, and the error says what it would have done.
func TestWithoutRoomAConclusionIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
		l := must(New(rdb, "room", []Policy{FixedWindow{Limit: 1000, Window: time.Hour}}, closed(time.Second)))(t)
		l.late.Room = 1
		first, last := must(l.TakeN(t.Context(), "s", 100))(t), must(l.TakeN(t.Context(), "s", 200))(t)
		rdb.Cut("refused")
		_ = first.Refund(t.Context())
		_, err := last.Settle(t.Context(), 50)
		dropped, is := errors.AsType[*DroppedError](err)
		if !is || !errors.Is(err, script.ErrMaybeExecuted) || *dropped != (DroppedError{"s", 200, 50, dropped.Err}) {
			t.Errorf("the second conclusion with room for one: got %v, want a DroppedError of 200 to 50", err)
		}
		if _, err := last.Settle(t.Context(), 50); !errors.Is(err, ErrSettle) {
			t.Errorf("again: got %v, want ErrSettle", err)
		}
		if got := l.Stats(); got.Dropped != 1 || got.Concluding != 1 {
			t.Errorf("got stats %+v, want one dropped and one in the background", got)
		}
		rdb.Mend()
		if err := l.remote.Store.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestReadingsThatCrossAChange: a reading that was asked for while a change was on its
// way may be older than the change. It says nothing, whether it arrives before the change
// is answered or after.
func TestReadingsThatCrossAChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(ctx context.Context, l *Limiter) error
		reading int64 // how long the ban lasts, in milliseconds
		want    bool
	}{
		"a ban, and Unban":          {func(ctx context.Context, l *Limiter) error { _, err := l.Unban(ctx, "s"); return err }, 60_000, false},
		"none, and Ban":             {func(ctx context.Context, l *Limiter) error { return l.Ban(ctx, "s", time.Hour) }, 0, true},
		"a longer ban, and Ban":     {func(ctx context.Context, l *Limiter) error { return l.Ban(ctx, "s", time.Millisecond) }, 60_000, false},
		"none, and another reading": {func(ctx context.Context, l *Limiter) error { _, err := l.Take(ctx, "s"); return err }, 0, true},
	} {
		for _, early := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				away := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
				rdb := &redistest.HookedClient{Processor: away}
				l := must(New(rdb, "n", []Policy{WithBan(FixedWindow{Name: "guesses", Limit: 5, Window: time.Minute}, Ban{After: 1, Within: time.Hour, For: 30 * time.Minute})}, &Options{Budget: time.Minute}))(t)
				must(0, l.Ban(t.Context(), "s", time.Hour))(t)
				crossing := newRequest("s", 1, 1)
				crossing.Readings[0].Ban = c.reading
				within := func(redis.Cmder) {
					time.Sleep(time.Second)
					crossing.Asked = time.Now()
					time.Sleep(time.Second)
					if early {
						l.local.Note(l.set, &crossing.Request, 0)
					}
				}
				rdb.Before.Store(&within)
				must(0, c.change(t.Context(), l))(t)
				rdb.Before.Store(nil)
				time.Sleep(time.Second)
				if !early {
					l.local.Note(l.set, &crossing.Request, 0)
				}
				away.Cut("refused")
				if d := must(l.Peek(t.Context(), "s"))(t); d.Banned() != c.want {
					t.Errorf("%s, early %t: got %+v, want banned %t", name, early, d, c.want)
				}
			})
		}
	}
}

// TestScriptsOfDecisionsAreBatched: the script of every decision goes through the queue, that of a
// settlement too.
func TestScriptsOfDecisionsAreBatched(t *testing.T) {
	t.Parallel()
	for i, policies := range append(slices.Collect(slices.Chunk(OneOfEach, 1)), OneOfEach, WithBans, withLeases) {
		l := must(New(redistest.SameClient{}, "batched", policies, nil))(t)
		for _, s := range []*script.Script{l.remote.Script, l.remote.Settle, l.remote.Late} {
			if !(*wire.Script)(s).IsBatched() {
				t.Errorf("set %d: got %s sent by itself, want it to be batched", i, s.Name())
			}
		}
	}
}

// TestAHintOfInstancesThatAreNotKnown: it is given once, where processes together admit
// more than the limit.
func TestAHintOfInstancesThatAreNotKnown(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	for name, c := range map[string]struct {
		opts   Options
		scaled int // the argument of SetInstances, unless it is 0
		want   int
	}{
		"not known":        {Options{}, 0, 1},
		"one":              {Options{Instances: 1}, 0, 0},
		"set later":        {Options{}, 3, 0},
		"without a limit":  {Options{Fail: store.FailOpen}, 0, 0},
		"without requests": {Options{Fail: store.FailClosed}, 0, 0},
	} {
		instancesHint = background.Hint{}
		var rdb redistest.AbsentClient
		rdb.Gone.Store(true)
		l := must(New(&rdb, "n", []Policy{FixedWindow{Limit: 9, Window: time.Hour}}, &c.opts))(t)
		if c.scaled > 0 {
			must(0, l.SetInstances(c.scaled))(t)
		}
		var text bytes.Buffer
		restore := redistest.DefaultLog(t, slog.NewTextHandler(&text, nil))
		for range 3 {
			if d, err := l.Take(t.Context(), "a subject"); err == nil != (c.opts.Fail != store.FailClosed) || err == nil && !d.Degraded {
				t.Errorf("%s: got %+v, %v, want no decision of Redis", name, d, err)
			}
		}
		near := must(NewLocal("n", []Policy{FixedWindow{Limit: 9, Window: time.Hour}}, nil))(t)
		must(near.Take(t.Context(), "a subject"))(t)
		restore()
		if n := strings.Count(text.String(), "set Instances to the number of your processes"); n != c.want || strings.Contains(text.String(), "a subject") {
			t.Errorf("%s: got %q, want %d lines with the remedy, and no subject", name, text.String(), c.want)
		}
	}
}

// TestAHintOfAnOverrideThatCannotBeUsed: it is given once, and not because a limiter of With has
// nothing to replace.
func TestAHintOfAnOverrideThatCannotBeUsed(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	_, rdb := redistest.Miniredis(t)
	kept := func(name string) Policy { return KeepOnChange(FixedWindow{Name: name, Limit: 9, Window: time.Hour}) }
	l := must(New(rdb, "n", []Policy{kept("w")}, &Options{Overrides: true}))(t)
	plan := must(l.With(kept("v")))(t)
	for text, c := range map[string]struct{ own, plan int }{
		"window 5/1h name w":  {0, 0},
		"window 5/1h name v":  {1, 0},
		"leaky 5/1h":          {1, 1},
		"window -5/1h name v": {1, 1},
	} {
		must(0, rdb.Set(t.Context(), "neap:limit:n:{subject-7}:override", text, time.Hour).Err())(t)
		for of, want := range map[*Limiter]int{l: c.own, plan: c.plan} {
			overrideHint = background.Hint{}
			var said bytes.Buffer
			restore := redistest.DefaultLog(t, slog.NewTextHandler(&said, nil))
			for range 3 {
				must(of.Take(t.Context(), "subject-7"))(t)
			}
			restore()
			if n := strings.Count(said.String(), "neap limit set"); n != want || strings.Contains(said.String(), "subject-7") {
				t.Errorf("%q, for the plan %t: got %q, want %d lines with the remedy, and no subject", text, of == plan, said.String(), want)
			}
		}
	}
}
