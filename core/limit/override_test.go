package limit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/lua"
)

// overriding are the options of a limiter whose policies may be overridden, and that waits for a busy
// machine.
func overriding() *limit.Options {
	opts := closed(patience)
	opts.Overrides = true
	return opts
}

// hourly is a policy that counts on when its Limit changes.
func hourly(most int64) limit.Policy {
	return limit.KeepOnChange(limit.FixedWindow{Name: "w", Limit: most, Window: time.Hour})
}

// TestAnOverrideIsForAllProcesses, and for all plans of the limiter that have the policy. What was used
// counts on. A process learns of it with two more round trips, and once.
func TestAnOverrideIsForAllProcesses(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		sent := new(redistest.CountingHook)
		rdb.AddHook(sent)
		one := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{hourly(3)}, overriding()))(t)
		other := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{hourly(3)}, overriding()))(t)
		plan := must(other.With(hourly(2)))(t)
		takes := func(l *limit.Limiter, calls int64, most, left int64) {
			t.Helper()
			before := sent.Scripts.Load()
			d := must(l.Take(t.Context(), "s"))(t)
			if n := sent.Scripts.Load() - before; d.Limit != most || d.Remaining != left || n != calls {
				t.Errorf("a take: got %+v with %d calls, want %d of %d left with %d calls", d, n, left, most, calls)
			}
		}
		must(0, one.Warm(t.Context()))(t)
		takes(one, 1, 3, 2)
		takes(other, 1, 3, 1)
		must(0, one.Override(t.Context(), "s", time.Hour, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
		must(0, one.Override(t.Context(), "warm", time.Hour, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
		if err := other.Warm(t.Context()); err != nil {
			t.Errorf("Warm, which asks about a subject of that name: got %v, want no error", err)
		}
		takes(one, 1, 100, 97)
		takes(other, 3, 100, 96)
		takes(other, 1, 100, 95)
		takes(plan, 1, 100, 94)
		if d := must(one.Take(t.Context(), "another subject"))(t); d.Limit != 3 || d.Remaining != 2 {
			t.Errorf("another subject: got %+v, want 2 of 3 left", d)
		}
		if d := must(one.TakeN(t.Context(), "s", 50))(t); !d.Allowed || d.Remaining != 44 {
			t.Errorf("a cost that only the override allows: got %+v, want it allowed, and 44 left", d)
		}
		policies, left, err := other.Overridden(t.Context(), "s")
		if err != nil || policies.String() != "window 100/1h" || left <= 59*time.Minute || left > time.Hour {
			t.Errorf("Overridden: got %v for %v, %v, want window 100/1h for an hour", policies, left, err)
		}
		if found := must(one.Reset(t.Context(), "s"))(t); !found {
			t.Error("Reset: got found false, want true")
		}
		takes(other, 1, 100, 99) // a reset forgets what was used, and not the override
		if found := must(other.EndOverride(t.Context(), "s"))(t); !found {
			t.Error("EndOverride: got found false, want true")
		}
		takes(other, 1, 3, 1)
		takes(one, 3, 3, 0)
		if found := must(one.EndOverride(t.Context(), "s"))(t); found {
			t.Error("a second EndOverride: got found true, want false")
		}
		if policies, left, err := one.Overridden(t.Context(), "s"); policies != nil || left != 0 || err != nil {
			t.Errorf("Overridden: got %v for %v, %v, want nothing", policies, left, err)
		}
	})
}

// TestManyCallersLearnOfAnOverride together: calls of one request are merged with those of others, and
// none of them fails or counts twice.
func TestManyCallersLearnOfAnOverride(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		one := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{hourly(1000)}, overriding()))(t)
		other := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{hourly(1000)}, overriding()))(t)
		for round := range int64(20) {
			must(0, one.Override(t.Context(), "s", time.Hour, limit.FixedWindow{Limit: 2000 + round, Window: time.Hour}))(t)
			var callers sync.WaitGroup
			for range 8 {
				for subject, most := range map[string]int64{"s": 2000 + round, "t": 1000} {
					callers.Go(func() {
						if d, err := other.Take(t.Context(), subject); err != nil || d.Limit != most {
							t.Errorf("%s: got a limit of %d, %v, want %d", subject, d.Limit, err, most)
						}
					})
				}
			}
			callers.Wait()
		}
		for subject, left := range map[string]int64{"s": 2019 - 160, "t": 1000 - 160} {
			if d := must(other.Peek(t.Context(), subject))(t); d.Remaining != left {
				t.Errorf("%s: got %d left, want %d", subject, d.Remaining, left)
			}
		}
	})
}

// TestACostThatOnlyAnOverrideAllows is no error, even if the process has not heard of the override.
func TestACostThatOnlyAnOverrideAllows(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		one := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{hourly(3)}, overriding()))(t)
		other := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{hourly(3)}, overriding()))(t)
		must(0, one.Override(t.Context(), "s", time.Hour, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
		if d := must(other.TakeN(t.Context(), "s", 50))(t); !d.Allowed || d.Remaining != 50 {
			t.Errorf("got %+v, want it allowed, and 50 left", d)
		}
		if _, err := other.TakeN(t.Context(), "s", 101); !errors.Is(err, limit.ErrCost) {
			t.Errorf("a cost above the override: got %v, want ErrCost", err)
		}
		must(0, one.Override(t.Context(), "s", time.Hour, limit.FixedWindow{Limit: 10, Window: time.Hour}))(t)
		if _, err := other.TakeN(t.Context(), "s", 50); !errors.Is(err, limit.ErrCost) {
			t.Errorf("a cost above a smaller override: got %v, want ErrCost", err)
		}
	}, redistest.OnStandalone)
}

// TestAnOverrideEnds by itself, in Redis and in a process that has learned of it.
func TestAnOverrideEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.BubbleClient(t, redistest.Bubble(t))
		for name, make := range map[string]maker{"in Redis": on(t, rdb, "neap"), "in process": limit.NewLocal} {
			l := must(make("ends", []limit.Policy{hourly(3)}, overriding()))(t)
			must(0, l.Override(t.Context(), "s", time.Minute, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
			time.Sleep(59 * time.Second)
			if d := must(l.Take(t.Context(), "s"))(t); d.Limit != 100 {
				t.Errorf("%s: before the end: got a limit of %d, want 100", name, d.Limit)
			}
			time.Sleep(2 * time.Second)
			if d := must(l.Take(t.Context(), "s"))(t); d.Limit != 3 || d.Remaining != 1 {
				t.Errorf("%s: after the end: got %d of %d left, want 1 of 3", name, d.Remaining, d.Limit)
			}
			must(0, l.Override(t.Context(), "s", time.Second, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
			for range 1800 { // to ask does not prolong it
				time.Sleep(600 * time.Microsecond)
				if _, _, err := l.Overridden(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
			}
			if d := must(l.Peek(t.Context(), "s"))(t); d.Limit != 3 {
				t.Errorf("%s: after the end: got a limit of %d, want 3", name, d.Limit)
			}
			must(0, l.Override(t.Context(), "s", 1500*time.Microsecond, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
			if _, left, err := l.Overridden(t.Context(), "s"); err != nil || left != 2*time.Millisecond {
				t.Errorf("%s: of 1.5 ms: got %v left, %v, want 2 ms, since a key lives for whole milliseconds", name, left, err)
			}
		}
	})
}

// TestAnOverrideInAnOutage: a process decides by what it has learned. One that cannot learn decides by
// its failure mode.
func TestAnOverrideInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		knows := &redistest.CutClient{Client: redistest.BubbleClient(t, m)}
		learns := &learning{Client: redistest.BubbleClient(t, m)}
		opts := &limit.Options{Overrides: true, Instances: 1}
		one := must(on(t, knows, "neap")("n", []limit.Policy{hourly(3)}, opts))(t)
		other := must(on(t, learns, "neap")("n", []limit.Policy{hourly(3)}, opts))(t)
		must(0, one.Override(t.Context(), "s", time.Hour, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
		knows.Cut("refused")
		if d := must(one.Take(t.Context(), "s"))(t); !d.Degraded || d.Limit != 100 {
			t.Errorf("a process that has learned: got %+v, want it decided without Redis, of 100", d)
		}
		learns.refuse.Store(true)
		if d := must(other.Take(t.Context(), "s"))(t); !d.Degraded || d.Limit != 3 {
			t.Errorf("a process that cannot learn: got %+v, want it decided without Redis, of 3", d)
		}
		if s := other.Stats(); s.Allowed != 1 || s.Degraded != 1 || s.Canceled+s.Failed > 0 {
			t.Errorf("got %+v, want one decision, without Redis", s)
		}
	})
}

// TestAnOverrideEndsADenialThatIsRemembered: at once in its process, and in others when they remember
// it no longer.
func TestAnOverrideEndsADenialThatIsRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.BubbleClient(t, redistest.Bubble(t))
		opts := overriding()
		opts.RememberDenials = time.Second
		one := must(on(t, rdb, "neap")("n", []limit.Policy{hourly(1)}, opts))(t)
		other := must(on(t, rdb, "neap")("n", []limit.Policy{hourly(1)}, opts))(t)
		for _, l := range []*limit.Limiter{one, one, other} {
			must(l.Take(t.Context(), "s"))(t)
		}
		must(0, one.Override(t.Context(), "s", time.Hour, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
		if d := must(one.Take(t.Context(), "s"))(t); !d.Allowed {
			t.Error("in the process that gave it: got a denial, want it allowed")
		}
		if d := must(other.Take(t.Context(), "s"))(t); d.Allowed {
			t.Error("in another process: got it allowed, want the denial that it remembers")
		}
		time.Sleep(time.Second)
		if d := must(other.Take(t.Context(), "s"))(t); !d.Allowed {
			t.Error("in another process, after RememberDenials: got a denial, want it allowed")
		}
	})
}

// TestAnOverrideKeepsEachLimitersTerms: a plan with the same numbers may have another Unit.
func TestAnOverrideKeepsEachLimitersTerms(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	unit := func(name string) limit.Policy {
		return limit.KeepOnChange(limit.FixedWindow{Name: "w", Limit: 3, Window: time.Hour, Unit: name})
	}
	l := must(limit.New(rdb, "n", []limit.Policy{unit("tokens")}, overriding()))(t)
	plan := must(l.With(unit("content-bytes")))(t)
	must(0, l.Override(t.Context(), "s", time.Hour, limit.FixedWindow{Limit: 100, Window: time.Hour}))(t)
	for want, of := range map[string]*limit.Limiter{"tokens": l, "content-bytes": plan} {
		d := must(of.Take(t.Context(), "s"))(t)
		for s := range d.States() {
			if s.Unit != want || s.Limit != 100 {
				t.Errorf("got the unit %q and a limit of %d, want %q and 100", s.Unit, s.Limit, want)
			}
		}
	}
}

// TestAnOverridesLastMillisecond decides by the one policies or by the others.
func TestAnOverridesLastMillisecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		for i, slept := range []time.Duration{900 * time.Microsecond, 1500 * time.Microsecond, 2 * time.Millisecond, 2500 * time.Microsecond} {
			name := fmt.Sprint("n", i)
			one := must(on(t, redistest.BubbleClient(t, m), "neap")(name, []limit.Policy{hourly(3)}, overriding()))(t)
			other := must(on(t, redistest.BubbleClient(t, m), "neap")(name, []limit.Policy{hourly(3)}, overriding()))(t)
			must(0, one.Override(t.Context(), "s", 2*time.Millisecond, limit.FixedWindow{Limit: 10, Window: time.Hour}))(t)
			time.Sleep(slept)
			if d, err := other.Take(t.Context(), "s"); err != nil || !d.Allowed || d.Degraded {
				t.Errorf("after %v of 2ms: got %+v, %v, want it allowed by Redis", slept, d, err)
			}
		}
	})
}

// TestAnOverrideThatCannotBeRead changes nothing: a later version may have written it.
func TestAnOverrideThatCannotBeRead(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		l := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{hourly(3)}, overriding()))(t)
		for _, text := range []string{"leaky 10/1s", "sliding 10/1h", "window 10/1h name other", "\x00", "window 0/1h"} {
			if err := admin.Set(t.Context(), prefix+":limit:n:{s}:override", text, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
			if d := must(l.Peek(t.Context(), "s"))(t); d.Limit != 3 {
				t.Errorf("%q: got a limit of %d, want 3", text, d.Limit)
			}
		}
		admin.Set(t.Context(), prefix+":limit:n:{s}:override", "window 10/1h", 0)
		for what, d := range map[string]limit.Decision{"peek": must(l.Peek(t.Context(), "s"))(t), "take": must(l.Take(t.Context(), "s"))(t)} {
			if d.Limit != 3 || d.Degraded {
				t.Errorf("without a time to live: got a %s under a limit of %d, want 3", what, d.Limit)
			}
		}
		if policies, left, err := l.Overridden(t.Context(), "s"); policies != nil || left != 0 || err != nil {
			t.Errorf("without a time to live: got %v for %v, %v, want nothing", policies, left, err)
		}
		must(0, l.Override(t.Context(), "s", time.Hour, limit.FixedWindow{Limit: 10, Window: time.Hour}))(t)
		if d := must(l.Peek(t.Context(), "s"))(t); d.Limit != 10 {
			t.Errorf("after an Override in its place: got a limit of %d, want 10", d.Limit)
		}
		admin.Del(t.Context(), prefix+":limit:n:{s}:override")
		admin.LPush(t.Context(), prefix+":limit:n:{s}:override", "window 10/1h")
		admin.Expire(t.Context(), prefix+":limit:n:{s}:override", time.Hour)
		if d := must(l.Take(t.Context(), "s"))(t); d.Limit != 3 {
			t.Errorf("a list: got a limit of %d, want 3", d.Limit)
		}
	})
}

// TestAnOverrideIsChecked: it is an error where no decision would heed it.
func TestAnOverrideIsChecked(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	day := limit.KeepOnChange(limit.CalendarWindow{Name: "daily", Limit: 100, Every: limit.Day})
	l := must(limit.New(rdb, "n", []limit.Policy{hourly(3), day, limit.KeepOnChange(limit.FixedWindow{Name: "v", Limit: 9, Window: time.Hour})}, overriding()))(t)
	window := limit.FixedWindow{Name: "w", Limit: 5, Window: time.Hour}
	for why, c := range map[string]struct {
		d        time.Duration
		policies []limit.Policy
		says     string
	}{
		"it takes no time":      {0, []limit.Policy{window}, "use EndOverride"},
		"no policies":           {time.Hour, nil, "policies is empty"},
		"a nil policy":          {time.Hour, []limit.Policy{nil}, "policies[0] (<nil>): it is nil: give a Policy"},
		"another kind":          {time.Hour, []limit.Policy{limit.SlidingWindow{Name: "w", Limit: 5, Window: time.Hour}}, `replaces none of the limiter's policies ["w" "daily" "v"]`},
		"another window":        {time.Hour, []limit.Policy{limit.FixedWindow{Name: "w", Limit: 5, Window: time.Minute}}, "replaces none"},
		"another name":          {time.Hour, []limit.Policy{limit.FixedWindow{Name: "x", Limit: 5, Window: time.Hour}}, "replaces none"},
		"another period":        {time.Hour, []limit.Policy{limit.CalendarWindow{Limit: 5, Every: limit.Month}}, "replaces none"},
		"no name, and two fit":  {time.Hour, []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, `may be meant for "w" or "v"`},
		"two for one":           {time.Hour, []limit.Policy{window, limit.FixedWindow{Name: "w", Limit: 9, Window: time.Hour}}, "policies[1] (limit.FixedWindow): it replaces the same policy as policies[0]"},
		"terms":                 {time.Hour, []limit.Policy{limit.Shadow(window)}, "leave them out"},
		"faulty numbers":        {time.Hour, []limit.Policy{window, limit.FixedWindow{Name: "v", Limit: -1, Window: time.Hour}}, "policies[1] (limit.FixedWindow): Limit is -1"},
		"a policy of one's own": {time.Hour, []limit.Policy{struct{ limit.FixedWindow }{window}}, "type of your own"},
	} {
		if err := l.Override(t.Context(), "s", c.d, c.policies...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want it to say %q", why, err, c.says)
		}
	}
	if err := l.Override(t.Context(), "s", time.Hour, window, limit.CalendarWindow{Limit: 5, Every: limit.Day}); err != nil {
		t.Errorf("a policy by its name and one by its kind: got %v, want no error", err)
	}
	for why, err := range map[string]error{
		"Override":    newTestLocal(t, nil, window).Override(t.Context(), "s", time.Hour, window),
		"EndOverride": second(newTestLocal(t, nil, window).EndOverride(t.Context(), "s")),
	} {
		if !errors.Is(err, limit.ErrNoOverride) {
			t.Errorf("%s without Overrides: got %v, want ErrNoOverride", why, err)
		}
	}
	if _, _, err := newTestLocal(t, nil, window).Overridden(t.Context(), "s"); !errors.Is(err, limit.ErrNoOverride) {
		t.Errorf("Overridden without Overrides: got %v, want ErrNoOverride", err)
	}
	if err := l.Override(t.Context(), "", time.Hour, window); !errors.Is(err, limit.ErrSubject) {
		t.Errorf("of an empty subject: got %v, want ErrSubject", err)
	}
	for says, c := range map[string]struct {
		policy limit.Policy
		opts   limit.Options
	}{
		"put it into KeepOnChange":      {window, limit.Options{Overrides: true}},
		"Overrides is set with Prepaid": {window, limit.Options{Overrides: true, Prepaid: limit.Prepaid{Most: 10}}},
		"it is of a type of your own":   {struct{ limit.FixedWindow }{window}, limit.Options{Overrides: true}},
	} {
		if _, err := limit.New(rdb, "n", []limit.Policy{c.policy}, &c.opts); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("New: got %v, want it to say %q", err, says)
		}
	}
	if _, err := l.With(window); err == nil || !strings.Contains(err.Error(), "put it into KeepOnChange") {
		t.Errorf("With: got %v, want it to name KeepOnChange", err)
	}
}

// learning is a client that may be refused what the limiters learn by.
type learning struct {
	*redis.Client

	refuse atomic.Bool
}

func (l *learning) Process(ctx context.Context, cmd redis.Cmder) error {
	if l.refuse.Load() && strings.Contains(cmd.String(), overrideSHA) {
		cmd.SetErr(io.EOF)
		return io.EOF
	}
	return l.Client.Process(ctx, cmd)
}

var overrideSHA = script.FromFS(lua.FS, "limit_override.lua").SHA()
