package limit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
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

func TestBanIsChecked(t *testing.T) {
	t.Parallel()
	window := limit.FixedWindow{Limit: 1, Window: time.Hour}
	for name, c := range map[string]struct {
		policy limit.Policy
		says   []string
	}{
		"nothing":        {limit.WithBan(window, limit.Ban{}), []string{"Ban.After is 0", "Ban.Within is 0s", "Ban.For is 0s"}},
		"a bare number":  {limit.WithBan(window, limit.Ban{After: 1, Within: 5, For: 5}), []string{"Ban.Within is 5ns", "Ban.For is 5ns", "bare number"}},
		"not whole":      {limit.WithBan(window, limit.Ban{After: 1, Within: time.Second + 1, For: time.Second + 1}), []string{"Ban.Within is", "Ban.For is", "milliseconds"}},
		"a short Max":    {limit.WithBan(window, limit.Ban{After: 1, Within: time.Second, For: time.Second, Max: time.Millisecond}), []string{"Ban.Max is 1ms", "at least For (1s)"}},
		"a Max in parts": {limit.WithBan(window, limit.Ban{After: 1, Within: time.Second, For: time.Second, Max: time.Hour + 1}), []string{"Ban.Max is"}},
		"too many":       {limit.WithBan(window, limit.Ban{After: 1 << 53, Within: time.Second, For: time.Second}), []string{"Ban.After", "2^52"}},
		"the policy too": {limit.WithBan(limit.FixedWindow{}, limit.Ban{}), []string{"Limit is 0", "Ban.After is 0"}},
		"in the shadow":  {limit.WithBan(limit.Shadow(window), limit.Ban{}), []string{"Ban.After is 0"}},
		"none":           {limit.WithBan(nil, short), []string{"policies[0] is nil"}},
	} {
		_, err := limit.NewLocal("bad", []limit.Policy{c.policy}, nil)
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want an error with %q", name, err, want)
			}
		}
	}
	if limit.WithBan(limit.WithBan(window, limit.Ban{}), short) != limit.WithBan(window, short) || limit.WithBan(limit.Shadow(window), short) != limit.Shadow(limit.WithBan(window, short)) {
		t.Error("a second ban, and one of a shadow: got others than the ban, and the shadow of a ban, want those")
	}
	_, err := limit.New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), "prepaid", []limit.Policy{limit.WithBan(window, short)}, &limit.Options{Prepaid: limit.Prepaid{Most: 10}})
	if err == nil || !strings.Contains(err.Error(), "Ban cannot be Prepaid") || !strings.Contains(err.Error(), "leave out") {
		t.Errorf("a ban beside Prepaid: got %v, want an error that names the remedy", err)
	}
}

// story is what happens to a subject under a limit of 2 an hour with short bans. Each
// line is a request: how long after the one before, and the answer.
var story = []struct {
	after   time.Duration
	allowed bool
	banned  time.Duration // for how long
}{
	{0, true, 0}, {0, true, 0},
	{0, false, 0}, {time.Second, false, 0}, {8 * time.Second, false, 5 * time.Second}, // the third denial in 10 s
	{time.Second, false, 4 * time.Second}, {3 * time.Second, false, time.Second}, // which count for nothing
	{time.Second, false, 0}, {time.Second, false, 0}, {time.Second, false, 10 * time.Second}, // twice as long
	{10 * time.Second, false, 0}, {10 * time.Second, false, 0}, // the first is 10 s ago
	{0, false, 0}, {0, false, 20 * time.Second}, // 20 s is the most
	{20 * time.Second, false, 0}, {0, false, 0}, {0, false, 20 * time.Second},
	{40*time.Second - time.Millisecond, false, 0}, {0, false, 0}, {0, false, 20 * time.Second}, // a millisecond before it is forgotten
	{40 * time.Second, false, 0}, {0, false, 0}, {0, false, 5 * time.Second}, // 20 s after it
	{2 * time.Hour, true, 0},
}

// TestBanStory plays the story in Redis and in process, alone and in a set, enforced and
// as a shadow.
func TestBanStory(t *testing.T) {
	t.Parallel()
	window := limit.WithBan(limit.FixedWindow{Name: "w", Limit: 2, Window: time.Hour}, short)
	other := limit.WithBan(limit.FixedWindow{Name: "other", Limit: 1000, Window: time.Hour}, short) // which denies nothing itself
	for name, policies := range map[string][]limit.Policy{"alone": {window}, "in a set": {other, window}, "in the shadow": {limit.Shadow(window), other}} {
		synctest.Test(t, func(t *testing.T) {
			m := redistest.Bubble(t)
			far, near := inBubble(t, m, "story", policies...), must(limit.NewLocal("story", policies, nil))(t)
			for line, c := range story {
				time.Sleep(c.after)
				for where, l := range map[string]*limit.Limiter{"in Redis": far, "in process": near} {
					foreseen, d := must(l.Peek(t.Context(), "s"))(t), must(l.Take(t.Context(), "s"))(t)
					for s := range d.States() {
						switch {
						case s.Policy == "other":
							if !s.Allowed || s.Banned {
								t.Errorf("%s, %s, line %d: got %+v, want no denial by the other policy", name, where, line, s)
							}
						case s.Allowed != c.allowed || s.Banned != (c.banned > 0) || s.Banned && s.Remaining != 0 || !s.Allowed && s.RetryAfter < c.banned || s.NextAfter < c.banned || s.ResetAfter < c.banned:
							t.Errorf("%s, %s, line %d: got %+v, want allowed %t, banned for %v", name, where, line, s, c.allowed, c.banned)
						case s.Shadow && (!d.Allowed || d.Banned() || d.RetryAfter > 0) || !s.Shadow && (d.Allowed != c.allowed || d.Banned() != s.Banned || d.RetryAfter != s.RetryAfter):
							t.Errorf("%s, %s, line %d: got %+v, want what its state says, and nothing of a shadow's", name, where, line, d)
						}
					}
					if foreseen.Allowed != d.Allowed {
						t.Errorf("%s, %s, line %d: got allowed %t foreseen by a peek, want %t as in the take", name, where, line, foreseen.Allowed, d.Allowed)
					}
					want := c.banned
					if name == "in the shadow" {
						want = 0
					}
					if left := must(l.Banned(t.Context(), "s"))(t); left != want {
						t.Errorf("%s, %s, line %d: Banned: got %v, want %v", name, where, line, left, want)
					}
				}
			}
		})
	}
}

// TestBanByHand bans on real servers. Reset does not lift the ban, Unban does, and the
// ban denies all costs.
func TestBanByHand(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for i, policies := range setsOf(limit.WithBans) {
			l := must(limit.New(storetest.At(t, rdb, prefix), fmt.Sprint("hand", i), policies, closed(patience)))(t)
			banned := func(least, most time.Duration) {
				t.Helper()
				left := must(l.Banned(t.Context(), "s"))(t)
				if left < least || left > most {
					t.Errorf("set %d: Banned after Ban: got %v, want %v to %v", i, left, least, most)
				}
				for _, cost := range []int64{0, 1} {
					for what, ask := range map[string]func() (limit.Decision, error){
						"a peek": func() (limit.Decision, error) { return l.PeekN(t.Context(), "s", cost) },
						"a take": func() (limit.Decision, error) { return l.TakeN(t.Context(), "s", cost) },
					} {
						d, err := ask()
						if err != nil || d.Allowed == (most > 0) || d.Banned() != (most > 0) || d.RetryAfter < least || d.RetryAfter > most {
							t.Errorf("set %d, %s of %d: got %+v, %v, want banned %t for %v to %v", i, what, cost, d, err, most > 0, least, most)
						}
					}
				}
			}
			banned(0, 0)
			for _, d := range []time.Duration{2 * time.Hour, time.Hour} { // the second takes the place of the first
				if err := l.Ban(t.Context(), "s", d); err != nil {
					t.Fatal(err)
				}
				banned(d-time.Minute, d)
			}
			if !must(l.Reset(t.Context(), "s"))(t) {
				t.Errorf("set %d: Reset: got found false, want true: permits were taken before", i)
			}
			banned(time.Hour-time.Minute, time.Hour)
			for _, want := range []bool{true, false} {
				if found := must(l.Unban(t.Context(), "s"))(t); found != want {
					t.Errorf("set %d: Unban: got found %t, want %t", i, found, want)
				}
			}
			banned(0, 0)
		}
	})
}

func TestBanByHandIsChecked(t *testing.T) {
	t.Parallel()
	srv, rdb := redistest.Miniredis(t)
	policies := []limit.Policy{limit.WithBan(limit.FixedWindow{Limit: 2, Window: time.Hour}, short)}
	without := newTestLocal(t, nil, limit.FixedWindow{Limit: 2, Window: time.Hour})
	l := must(limit.New(rdb, "checked", policies, closed(patience)))(t)
	if err := l.Ban(t.Context(), "s", 0); err == nil || !strings.Contains(err.Error(), "use Unban") {
		t.Errorf("Ban for no time: got %v, want an error that names Unban", err)
	}
	srv.SetError("NOPERM this user has no permissions") // which is not asked again
	for of, want := range map[*limit.Limiter]error{without: limit.ErrNoBan, l: script.ErrConfiguration} {
		_, err := of.Banned(t.Context(), "s")
		_, fault := of.Unban(t.Context(), "s")
		if third := of.Ban(t.Context(), "s", time.Second); !errors.Is(err, want) || !errors.Is(fault, want) || !errors.Is(third, want) {
			t.Errorf("Ban, Unban and Banned without a Ban: got %v, %v and %v, want %v each", err, fault, third, want)
		}
	}
	if err := (*limit.Limiter)(nil).Ban(t.Context(), "s", time.Second); err == nil || !strings.Contains(err.Error(), "a nil or zero Limiter") {
		t.Errorf("Ban of a nil limiter: got %v, want an error that says so", err)
	}
	if err := l.Ban(t.Context(), "", time.Second); !errors.Is(err, limit.ErrSubject) {
		t.Errorf("Ban of an empty subject: got %v, want ErrSubject", err)
	}
	watched := must(limit.NewLocal("watched", []limit.Policy{limit.Shadow(policies[0])}, nil))(t)
	if err := watched.Ban(t.Context(), "s", time.Hour); err != nil {
		t.Fatal(err)
	}
	d := must(watched.Take(t.Context(), "s"))(t)
	if left := must(watched.Banned(t.Context(), "s"))(t); left != 0 || !d.Allowed || !first(d).Banned {
		t.Errorf("the ban of a shadow: got %+v, and Banned %v, want it only reported", d, left)
	}
}

// TestBanForGood: the longest possible duration does not overflow.
func TestBanForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, nil, limit.WithBan(limit.FixedWindow{Limit: 2, Window: time.Hour}, short))
		must(0, l.Ban(t.Context(), "s", math.MaxInt64))(t)
		left, d := must(l.Banned(t.Context(), "s"))(t), must(l.Take(t.Context(), "s"))(t)
		if least := math.MaxInt64 - time.Millisecond; left < least || d.Allowed || d.RetryAfter != left {
			t.Errorf("after the longest ban: got Banned %v, and %+v, want a denial for at least %v", left, d, least)
		}
	})
}

// TestWaitHearsOfBansByHand: a caller that waits for the end of a ban asks again when
// this process lifts the ban or replaces it, even if denials are remembered.
func TestWaitHearsOfBansByHand(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(l *limit.Limiter) error{
		"lifted":  func(l *limit.Limiter) error { return second(l.Unban(context.Background(), "s")) },
		"shorter": func(l *limit.Limiter) error { return l.Ban(context.Background(), "s", time.Millisecond) },
	} {
		synctest.Test(t, func(t *testing.T) {
			policy := limit.WithBan(limit.FixedWindow{Limit: 2, Window: time.Hour}, short)
			far := must(limit.New(redistest.BubbleClient(t, redistest.Bubble(t)), "wait", []limit.Policy{policy},
				&limit.Options{Budget: time.Minute, Fail: store.FailClosed, RememberDenials: time.Minute}))(t)
			for _, l := range []*limit.Limiter{newTestLocal(t, nil, policy), far} {
				must(0, l.Ban(t.Context(), "s", time.Hour))(t)
				began := time.Now()
				time.AfterFunc(time.Second, func() { must(0, change(l))(t) })
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				d, err := l.Wait(ctx, "s")
				cancel()
				if took := time.Since(began).Round(10 * time.Millisecond); err != nil || !d.Allowed || took != time.Second {
					t.Errorf("%s: got %+v, %v after %v, want it allowed after 1 s", what, d, err, took)
				}
			}
		})
	}
}

// TestEventsTellOfBans: events report the denial that begins a ban, the denials by a ban
// (also from memory and without Redis), and those that a shadow's ban would make.
func TestEventsTellOfBans(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		var heard observations
		window, long := limit.FixedWindow{Name: "w", Limit: 1, Window: time.Hour}, limit.Ban{After: 3, Within: time.Hour, For: time.Hour}
		opts := &limit.Options{Budget: time.Minute, RememberDenials: time.Minute}
		var away redistest.AbsentClient
		away.Gone.Store(true)
		l := must(limit.New(heard.of(t, rdb, prefix), "seen", []limit.Policy{limit.WithBan(window, long)}, opts))(t)
		soon := &limit.Options{Budget: 10 * time.Millisecond, RememberDenials: time.Minute} // each request waits for it
		local := must(limit.New(heard.of(t, &away, prefix), "away", []limit.Policy{limit.WithBan(window, long)}, soon))(t)
		shadow := must(limit.New(heard.of(t, rdb, prefix), "shadow", []limit.Policy{limit.WithBan(limit.Shadow(window), long)}, opts))(t)
		for _, asked := range []*limit.Limiter{l, local, shadow} {
			for i, banned := range []bool{false, false, false, true, true, true} {
				must(asked.Take(t.Context(), "s"))(t)
				outcome := store.Denied
				switch {
				case i == 0:
					outcome = store.Granted
				case asked == shadow:
					outcome = store.ShadowDenied
				}
				if e := heard.last(t); e.Banned != banned || e.Outcome != outcome {
					t.Errorf("%s: request %d of a limit of 1, banned after three denials: got the event %+v, want %s and banned %t", asked.Name(), i+1, e, outcome, banned)
				}
			}
		}
	})
}
