package limit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestMergedOnServers has many callers of some subjects at the same time, on real servers. Their
// calls are merged, and exactly the limit of each subject is admitted.
func TestMergedOnServers(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		merges := new(mergeHook)
		rdb.AddHook(merges)
		const most, subjects = 100, 20
		callers := redistest.Ops(256)
		bucket, fast := limit.TokenBucket{Rate: 1, Per: time.Hour, Burst: most}, limit.TokenBucket{Rate: 1001, Per: time.Second, Burst: most}
		window, sliding := limit.FixedWindow{Limit: most, Window: time.Hour}, limit.SlidingWindow{Limit: most, Window: time.Hour}
		log, month := limit.SlidingLog{Limit: most, Window: time.Hour}, limit.CalendarWindow{Limit: most, Every: limit.Month}
		kept := limit.KeepOnChange(limit.TokenBucket{Name: "kept", Rate: 1, Per: time.Hour, Burst: most})
		brief := limit.Ban{After: 1_000_000, Within: time.Hour, For: time.Hour}
		for i, policies := range [][]limit.Policy{
			{bucket}, {fast}, {window}, {sliding}, {log}, {month}, {kept},
			{bucket, month}, {sliding, log}, {kept, limit.Shadow(window)}, {limit.WithBan(window, brief)},
		} {
			p, before := policies[0], merges.merged.Load()
			st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Queue: store.Queued})
			l := must(limit.New(st, fmt.Sprint("merged", i), policies, closed(patience)))(t)
			must(0, l.Warm(t.Context()))(t)
			var granted [subjects]atomic.Int64
			began := time.Now()
			together(callers, func(n int) {
				for i := range subjects * 2 {
					of, cost := (n+i)%subjects, int64(1+i%2)
					d, err := l.TakeN(t.Context(), fmt.Sprint(of), cost)
					if err != nil {
						t.Errorf("%+v: got %v, want a decision", p, err)
					}
					if d.Allowed {
						granted[of].Add(cost)
					}
				}
			})
			limited := int64(most)
			if p, is := p.(limit.TokenBucket); is && p.Rate > 1 { // it refills while it is asked
				limited += 1 + int64(1001*time.Since(began).Seconds())
			}
			for i := range granted {
				if n := granted[i].Load(); n < most || n > limited {
					t.Errorf("%+v, subject %d: got %d permits granted, want %d to %d", p, i, n, most, limited)
				}
			}
			if merges.merged.Load() == before {
				t.Errorf("%+v: got no merged call, want some", policies)
			}
		}
	}, redistest.OnStandalone, redistest.OnCluster)
}

// TestMergedDenialsNeedNoMemory: Redis refuses what a merged call writes for one subject while
// its memory is full, and the denials of another are made all the same.
func TestMergedDenialsNeedNoMemory(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--maxmemory-policy", "noeviction")
	rdb, merges := srv.Client(t), new(mergeHook)
	rdb.AddHook(merges)
	st := storetest.Open(t, rdb, store.Options{Prefix: srv.Prefix(t), Queue: store.Queued})
	l := must(limit.New(st, "full", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, closed(patience)))(t)
	must(0, l.Warm(t.Context()))(t)
	take(t, l, "exhausted", 10)
	must(srv.Admin(t).ConfigSet(t.Context(), "maxmemory", "1").Result())(t)
	together(60, func(i int) {
		if i%2 == 0 {
			if d, err := l.Take(t.Context(), "exhausted"); err != nil || d.Allowed {
				t.Errorf("of the exhausted subject: got %v, %v, want a denial", d.Allowed, err)
			}
		} else if _, err := l.Take(t.Context(), "fresh"); !errors.Is(err, script.ErrNotExecuted) {
			t.Errorf("of the other: got %v, want ErrNotExecuted", err)
		}
	})
	if merges.merged.Load() == 0 {
		t.Error("got no merged call, want some")
	}
}

// TestMergedCountsNothingElse: a merged call leaves alone what no script wrote, and decides the
// requests of other subjects. Those of this one end with an error.
func TestMergedCountsNothingElse(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	rdb, merges := srv.Client(t), new(mergeHook)
	rdb.AddHook(merges)
	st := storetest.Open(t, rdb, store.Options{Prefix: prefix, Queue: store.Queued})
	l := must(limit.New(st, "odd", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, closed(patience)))(t)
	for _, held := range []string{"9.5", "-3"} {
		key := prefix + ":limit:odd:{" + held + "}:window-10-1h"
		if err := srv.Admin(t).Set(t.Context(), key, held, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		var granted atomic.Int64
		together(60, func(i int) {
			if i%2 == 0 {
				if _, err := l.Take(t.Context(), held); !errors.Is(err, script.ErrFailed) || !strings.Contains(err.Error(), "no record") {
					t.Errorf("%s: got %v, want an error that says there is no record", held, err)
				}
			} else if must(l.Take(t.Context(), "beside"+held))(t).Allowed {
				granted.Add(1)
			}
		})
		if left := srv.Admin(t).Get(t.Context(), key).Val(); granted.Load() != 10 || left != held {
			t.Errorf("%s: got %d granted to another subject and %s in the key, want 10 and the key as it was", held, granted.Load(), left)
		}
	}
	if merges.merged.Load() == 0 {
		t.Error("got no merged call, want some")
	}
}

// TestMergedCallsHeal: a key has lost its time to live, or lives too long, when a merged call is
// the first that finds it. It is healed, and the decisions are those of a key as full as can be.
func TestMergedCallsHeal(t *testing.T) {
	t.Parallel()
	const most = 2002
	for name, c := range map[string]struct {
		policy limit.Policy
		used   int64
		lives  time.Duration // 0 is for ever
		want   int           // how many of eight are granted
	}{
		"bucket for ever":              {limit.TokenBucket{Rate: 1, Per: time.Second, Burst: most}, 1, 0, 0},
		"bucket for long":              {limit.TokenBucket{Rate: 1, Per: time.Second, Burst: most}, 1, 9999 * time.Hour, 0},
		"fast bucket for ever":         {limit.TokenBucket{Rate: 1001, Per: time.Second, Burst: most}, most, 0, 0},
		"fast bucket for long":         {limit.TokenBucket{Rate: 1001, Per: time.Second, Burst: most}, most, 9999 * time.Hour, 0},
		"window for ever":              {limit.FixedWindow{Limit: most, Window: time.Second}, 1, 0, 8},
		"window for long":              {limit.FixedWindow{Limit: most, Window: time.Second}, 1, 9999 * time.Hour, 8},
		"full window for long":         {limit.FixedWindow{Limit: most, Window: time.Second}, most, 9999 * time.Hour, 0},
		"sliding window for ever":      {limit.SlidingWindow{Limit: most, Window: time.Second}, 1, 0, 8},
		"full sliding window for long": {limit.SlidingWindow{Limit: most, Window: time.Second}, most, 9999 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := redistest.Bubble(t)
				admin := redistest.BubbleClient(t, m)
				must(must(limit.New(admin, "merged", []limit.Policy{c.policy}, closed(time.Minute)))(t).TakeN(t.Context(), "s", c.used))(t)
				key := m.Keys()[0]
				must(0, admin.Persist(t.Context(), key).Err())(t)
				if c.lives > 0 {
					must(0, admin.PExpire(t.Context(), key, c.lives).Err())(t)
				}
				if granted := merged(t, redistest.BubbleClient(t, m), []limit.Policy{c.policy}, (*limit.Limiter).Take); granted != c.want {
					t.Errorf("got %d granted, want %d", granted, c.want)
				}
				if left := admin.PTTL(t.Context(), key).Val(); left <= 0 || left > time.Hour {
					t.Errorf("afterwards: got %v to live, want at most an hour", left)
				}
			})
		})
	}
}

// TestMergedQuestions: each is answered as if it was the only one, whatever the others ask.
func TestMergedQuestions(t *testing.T) {
	t.Parallel()
	for _, p := range slow {
		synctest.Test(t, func(t *testing.T) {
			m := redistest.Bubble(t)
			take(t, must(limit.New(redistest.BubbleClient(t, m), "merged", []limit.Policy{p}, nil))(t), "s", 10)
			peek := func(l *limit.Limiter, ctx context.Context, subject string) (limit.Decision, error) {
				return l.PeekN(ctx, subject, 60)
			}
			if granted := merged(t, redistest.BubbleClient(t, m), []limit.Policy{p}, peek); granted != 8 {
				t.Errorf("%s: eight questions whether 60 of 90 are there: got yes %d times, want 8", p.PolicyName(), granted)
			}
		})
	}
}

// TestMergedDenialsBan: the second denial begins a ban, so the others are not counted for the other ban.
func TestMergedDenialsBan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		policies := []limit.Policy{
			limit.WithBan(limit.FixedWindow{Name: "a", Limit: 1, Window: time.Hour}, limit.Ban{After: 2, Within: time.Hour, For: time.Minute}),
			limit.WithBan(limit.FixedWindow{Name: "b", Limit: 1, Window: time.Hour}, limit.Ban{After: 4, Within: time.Hour, For: time.Hour}),
		}
		l := must(limit.New(redistest.BubbleClient(t, m), "merged", policies, nil))(t)
		take(t, l, "s", 1)
		if granted := merged(t, redistest.BubbleClient(t, m), policies, (*limit.Limiter).Take); granted != 0 {
			t.Errorf("beyond the limit: got %d granted, want none", granted)
		}
		if left := must(l.Banned(t.Context(), "s"))(t); left != time.Minute {
			t.Errorf("after eight denials, where the second bans for a minute: got a ban of %v, want a minute", left)
		}
	})
}

// merged has eight callers ask about one subject at one moment, in calls that are merged. It returns how
// many are granted.
func merged(t *testing.T, rdb *redis.Client, policies []limit.Policy, ask func(*limit.Limiter, context.Context, string) (limit.Decision, error)) int {
	t.Helper()
	hook := new(mergeHook)
	rdb.AddHook(hook)
	l := must(limit.New(storetest.Open(t, rdb, store.Options{Queue: store.Queued}), "merged", policies, closed(time.Minute)))(t)
	var all sync.WaitGroup
	release := hook.hold()
	all.Go(func() { must(l.Take(t.Context(), "other"))(t) })
	synctest.Wait() // it is on its way, so that those that follow wait together
	var granted atomic.Int64
	for range 8 {
		all.Go(func() {
			if must(ask(l, t.Context(), "s"))(t).Allowed {
				granted.Add(1)
			}
		})
	}
	synctest.Wait()
	release()
	all.Wait()
	if hook.merged.Load() == 0 {
		t.Error("got no merged call, want one at least")
	}
	return int(granted.Load())
}

// TestAShadowDeniesNobodyOfARun: each caller of a merged call is told what was left behind it,
// although a shadow denies some of them.
func TestAShadowDeniesNobodyOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var left []int64
		granted := merged(t, redistest.BubbleClient(t, redistest.Bubble(t)), []limit.Policy{
			limit.FixedWindow{Limit: 10, Window: time.Hour}, limit.Shadow(limit.FixedWindow{Limit: 3, Window: time.Hour}),
		}, func(l *limit.Limiter, ctx context.Context, subject string) (limit.Decision, error) {
			d, err := l.Take(ctx, subject)
			mu.Lock()
			defer mu.Unlock()
			left = append(left, d.Remaining)
			return d, err
		})
		slices.Sort(left)
		if want := []int64{2, 3, 4, 5, 6, 7, 8, 9}; granted != 8 || !slices.Equal(left, want) {
			t.Errorf("eight of 10: got %d granted and %v left, want all, and %v", granted, left, want)
		}
	})
}

// mergeHook counts merged calls, and can hold what a client sends.
type mergeHook struct {
	merged atomic.Int64
	held   atomic.Pointer[chan struct{}]
}

// hold holds all commands until release.
func (h *mergeHook) hold() (release func()) {
	held := make(chan struct{})
	h.held.Store(&held)
	return func() {
		h.held.Store(nil)
		close(held)
	}
}

func (*mergeHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *mergeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.sent(cmd)
		return next(ctx, cmd)
	}
}

func (h *mergeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		h.sent(all...)
		return next(ctx, all)
	}
}

func (h *mergeHook) sent(all ...redis.Cmder) {
	for _, cmd := range all {
		if words := cmd.Args(); fmt.Sprintf("%T", words[len(words)-1]) == "*wire.runCalls" {
			h.merged.Add(1)
		}
	}
	if held := h.held.Load(); held != nil {
		<-*held
	}
}
