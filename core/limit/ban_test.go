package limit

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

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// short are bans of 5 to 20 s for three denials in 10 s.
var short = Ban{After: 3, Within: 10 * time.Second, For: 5 * time.Second, Max: 20 * time.Second}

func TestBanIsChecked(t *testing.T) {
	t.Parallel()
	window := FixedWindow{Limit: 1, Window: time.Hour}
	for name, c := range map[string]struct {
		policy Policy
		says   []string
	}{
		"nothing":        {WithBan(window, Ban{}), []string{"Ban.After is 0", "Ban.Within is 0s", "Ban.For is 0s"}},
		"a bare number":  {WithBan(window, Ban{After: 1, Within: 5, For: 5}), []string{"Ban.Within is 5ns", "Ban.For is 5ns", "bare number"}},
		"not whole":      {WithBan(window, Ban{After: 1, Within: time.Second + 1, For: time.Second + 1}), []string{"Ban.Within is", "Ban.For is", "milliseconds"}},
		"a short Max":    {WithBan(window, Ban{After: 1, Within: time.Second, For: time.Second, Max: time.Millisecond}), []string{"Ban.Max is 1ms", "at least For (1s)"}},
		"a Max in parts": {WithBan(window, Ban{After: 1, Within: time.Second, For: time.Second, Max: time.Hour + 1}), []string{"Ban.Max is"}},
		"too many":       {WithBan(window, Ban{After: 1 << 53, Within: time.Second, For: time.Second}), []string{"Ban.After", "2^52"}},
		"the policy too": {WithBan(FixedWindow{}, Ban{}), []string{"Limit is 0", "Ban.After is 0"}},
		"in the shadow":  {WithBan(Shadow(window), Ban{}), []string{"Ban.After is 0"}},
		"none":           {WithBan(nil, short), []string{"policies[0] is nil"}},
	} {
		_, err := NewLocal("bad", []Policy{c.policy}, nil)
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want an error with %q", name, err, want)
			}
		}
	}
	if WithBan(WithBan(window, Ban{}), short) != WithBan(window, short) || WithBan(Shadow(window), short) != Shadow(WithBan(window, short)) {
		t.Error("a second ban, and one of a shadow: got others than the ban, and the shadow of a ban, want those")
	}
	_, err := New(redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), "prepaid", []Policy{WithBan(window, short)}, &Options{Prepaid: Prepaid{Most: 10}})
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
	window := WithBan(FixedWindow{Name: "w", Limit: 2, Window: time.Hour}, short)
	other := WithBan(FixedWindow{Name: "other", Limit: 1000, Window: time.Hour}, short) // which denies nothing itself
	for name, policies := range map[string][]Policy{"alone": {window}, "in a set": {other, window}, "in the shadow": {Shadow(window), other}} {
		synctest.Test(t, func(t *testing.T) {
			m := bubble(t)
			far, near := inBubble(t, m, "story", policies...), must(NewLocal("story", policies, nil))(t)
			for line, c := range story {
				time.Sleep(c.after)
				for where, l := range map[string]*Limiter{"in Redis": far, "in process": near} {
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
		for i, policies := range setsOf(withBans) {
			l := must(New(storetest.At(t, rdb, prefix), fmt.Sprint("hand", i), policies, closed(10*time.Second)))(t)
			banned := func(least, most time.Duration) {
				t.Helper()
				left := must(l.Banned(t.Context(), "s"))(t)
				if left < least || left > most {
					t.Errorf("set %d: Banned after Ban: got %v, want %v to %v", i, left, least, most)
				}
				for _, cost := range []int64{0, 1} {
					for what, ask := range map[string]func() (Decision, error){
						"a peek": func() (Decision, error) { return l.PeekN(t.Context(), "s", cost) },
						"a take": func() (Decision, error) { return l.TakeN(t.Context(), "s", cost) },
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
	srv, rdb := newServer(t)
	policies := []Policy{WithBan(FixedWindow{Limit: 2, Window: time.Hour}, short)}
	without := newTestLocal(t, nil, FixedWindow{Limit: 2, Window: time.Hour})
	l := must(New(rdb, "checked", policies, closed(5*time.Second)))(t)
	if err := l.Ban(t.Context(), "s", 0); err == nil || !strings.Contains(err.Error(), "use Unban") {
		t.Errorf("Ban for no time: got %v, want an error that names Unban", err)
	}
	srv.SetError("NOPERM this user has no permissions") // which is not asked again
	for of, want := range map[*Limiter]error{without: ErrNoBan, l: script.ErrConfiguration, nil: errLimiter} {
		_, err := of.Banned(t.Context(), "s")
		_, fault := of.Unban(t.Context(), "s")
		if third := of.Ban(t.Context(), "s", time.Second); !errors.Is(err, want) || !errors.Is(fault, want) || !errors.Is(third, want) {
			t.Errorf("Ban, Unban and Banned without a Ban: got %v, %v and %v, want %v each", err, fault, third, want)
		}
	}
	if err := l.Ban(t.Context(), "", time.Second); !errors.Is(err, ErrSubject) {
		t.Errorf("Ban of an empty subject: got %v, want ErrSubject", err)
	}
	watched := must(NewLocal("watched", []Policy{Shadow(policies[0])}, nil))(t)
	if err := watched.Ban(t.Context(), "s", time.Hour); err != nil {
		t.Fatal(err)
	}
	d := must(watched.Take(t.Context(), "s"))(t)
	if left := must(watched.Banned(t.Context(), "s"))(t); left != 0 || !d.Allowed || !d.first.Banned {
		t.Errorf("the ban of a shadow: got %+v, and Banned %v, want it only reported", d, left)
	}
}

// TestBanForGood: the longest possible duration does not overflow.
func TestBanForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLocal(t, nil, WithBan(FixedWindow{Limit: 2, Window: time.Hour}, short))
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
	for what, change := range map[string]func(l *Limiter) error{
		"lifted":  func(l *Limiter) error { return second(l.Unban(context.Background(), "s")) },
		"shorter": func(l *Limiter) error { return l.Ban(context.Background(), "s", time.Millisecond) },
	} {
		synctest.Test(t, func(t *testing.T) {
			policy := WithBan(FixedWindow{Limit: 2, Window: time.Hour}, short)
			far := must(New(redistest.BubbleClient(t, bubble(t)), "wait", []Policy{policy},
				&Options{Budget: time.Minute, Fail: store.FailClosed, RememberDenials: time.Minute}))(t)
			for _, l := range []*Limiter{newTestLocal(t, nil, policy), far} {
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

// TestBanWithoutRedis: the process bans by the denials that it has seen itself, and by
// the bans that were made in it.
func TestBanWithoutRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := bubble(t)
		l := must(New(redistest.BubbleClient(t, m), "away", []Policy{WithBan(FixedWindow{Limit: 1, Window: time.Hour}, short)}, nil))(t)
		if err := l.Ban(t.Context(), "by hand", time.Minute); err != nil {
			t.Fatal(err)
		}
		m.SetError("LOADING Redis is loading the dataset in memory")
		for i, want := range []time.Duration{0, 0, 0, 5 * time.Second} {
			if d := must(l.Take(t.Context(), "s"))(t); !d.Degraded || d.Allowed != (i == 0) || d.Banned() != (want > 0) {
				t.Errorf("request %d: got %+v, want it degraded, allowed %t and banned %t", i, d, i == 0, want > 0)
			}
		}
		if d := must(l.Take(t.Context(), "by hand"))(t); !d.Degraded || !d.Banned() {
			t.Errorf("a subject that was banned before: got %+v, want it degraded and banned", d)
		}
	})
}

// TestDenialStandsUncounted: the denial is Redis' own even if Redis refuses to count it.
func TestDenialStandsUncounted(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(t *testing.T, srv *redistest.Server, user string){
		"full": func(t *testing.T, srv *redistest.Server, _ string) {
			must(srv.Admin(t).ConfigSet(t.Context(), "maxmemory", "1").Result())(t)
		},
		"without SET": func(t *testing.T, srv *redistest.Server, user string) {
			must(srv.Admin(t).ACLSetUser(t.Context(), user, "-set").Result())(t)
		},
		"a replica": func(t *testing.T, srv *redistest.Server, _ string) {
			must(srv.Admin(t).ReplicaOf(t.Context(), "127.0.0.1", "1").Result())(t)
		},
		"too few replicas": func(t *testing.T, srv *redistest.Server, _ string) {
			must(srv.Admin(t).ConfigSet(t.Context(), "min-replicas-to-write", "1").Result())(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t, "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
			user := redistest.NewUser(t, redistest.Rules, srv)
			st := storetest.At(t, srv.Client(t, func(o *redis.Options) { o.Username = user }), srv.Prefix(t))
			hourly := Ban{After: 2, Within: time.Hour, For: time.Hour}
			for i, policies := range setsOf([]Policy{
				WithBan(FixedWindow{Name: "w", Limit: 1, Window: time.Hour}, hourly), WithBan(SlidingLog{Name: "l", Limit: 1, Window: time.Hour}, hourly),
			}) {
				l := must(New(st, fmt.Sprint("refused", i), policies, closed(10*time.Second)))(t)
				must(l.Take(t.Context(), "s"))(t)
				before := must(l.Take(t.Context(), "s"))(t)
				if before.Allowed || before.Banned() {
					t.Fatalf("the first denial: got %+v, want no ban", before)
				}
			}
			refuse(t, srv, user)
			for i, policies := range setsOf([]Policy{
				WithBan(FixedWindow{Name: "w", Limit: 1, Window: time.Hour}, hourly), WithBan(SlidingLog{Name: "l", Limit: 1, Window: time.Hour}, hourly),
			}) {
				l := must(New(st, fmt.Sprint("refused", i), policies, closed(10*time.Second)))(t)
				for n := range 4 {
					if d, err := l.Take(t.Context(), "s"); err != nil || d.Allowed || d.Degraded || d.Banned() {
						t.Errorf("set %d, denial %d that cannot be counted: got %+v, %v, want it without a ban", i, n, d, err)
					}
				}
			}
		})
	}
}

// TestBanHeals: a record without a time to live gets one. If the server's clock was set
// back, a ban lasts no longer than it was to. Anything that is not a record counts as no
// record.
func TestBanHeals(t *testing.T) {
	t.Parallel()
	m, rdb := newServer(t)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m.SetTime(now)
	l := must(New(rdb, "heals", []Policy{WithBan(FixedWindow{Limit: 1, Window: 1000 * time.Hour}, short)}, closed(5*time.Second)))(t)
	key := l.remote.keys(l, "s")[1]
	for range 3 {
		must(l.Take(t.Context(), "s"))(t)
	}
	for _, spoil := range []string{"two denials", "a ban"} {
		m.SetTTL(key, 0)
		if spoil == "a ban" {
			m.SetTime(now.Add(-24 * time.Hour))
		}
		must(l.Peek(t.Context(), "s"))(t)
		must(l.TakeN(t.Context(), "s", 0))(t)
		if m.TTL(key) != 0 {
			t.Errorf("%s: a peek: got a changed record, want nothing written", spoil)
		}
		if d := must(l.Take(t.Context(), "s"))(t); !d.Banned() {
			t.Errorf("%s, and one more denial: got %+v, want a ban", spoil, d)
		}
		if ttl, left := m.TTL(key), must(l.Banned(t.Context(), "s"))(t); ttl != short.For+short.Max || left != short.For {
			t.Errorf("%s: got a ban of %v that is kept for %v, want %v and %v", spoil, left, ttl, short.For, short.For+short.Max)
		}
	}
	m.SetTime(now.Add(-24*time.Hour + short.For))
	if d := must(l.Take(t.Context(), "s"))(t); d.Banned() {
		t.Errorf("after the ban has ended: got %+v, want a denial by the window alone", d)
	}
	must(rdb.Set(t.Context(), key, "what is this", time.Hour).Result())(t)
	for i := range 4 {
		if d := must(l.Take(t.Context(), "s"))(t); d.Banned() != (i >= 2) {
			t.Errorf("denial %d beside what is not a record: got %+v, want a ban at the third", i, d)
		}
	}
	must(rdb.Del(t.Context(), key).Result())(t)
	must(rdb.RPush(t.Context(), key, "a list").Result())(t)
	if _, err := l.Take(t.Context(), "s"); !errors.Is(err, script.ErrConfiguration) && !errors.Is(err, script.ErrFailed) {
		t.Errorf("beside a list in place of the record: got %v, want an error", err)
	}
}

// TestBansAloneAreRemembered: Redis must count every other denial.
func TestBansAloneAreRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, calls := countedClient(t)
		policies := []Policy{WithBan(FixedWindow{Name: "w", Limit: 1, Window: time.Hour}, short), FixedWindow{Name: "plain", Limit: 1, Window: time.Hour}}
		for i, set := range [][]Policy{policies, policies[:1]} {
			l := must(New(rdb, fmt.Sprint("bans", i), set, &Options{Budget: time.Minute, Fail: store.FailClosed, RememberDenials: time.Minute}))(t)
			ask := func(banned bool, asked int64, retry time.Duration) {
				t.Helper()
				before := calls.Load()
				d := must(l.Take(t.Context(), "s"))(t)
				state := d.first
				if d.Allowed || d.Banned() != banned || state.RetryAfter < retry || calls.Load()-before != asked {
					t.Errorf("a denial: got %+v with %d calls, want banned %t, with %d calls, and RetryAfter %v", d, calls.Load()-before, banned, asked, retry)
				}
			}
			take(t, l, "s", 1)
			ask(false, 1, 0)
			ask(false, 1, 0)
			ask(true, 1, 5*time.Second)
			ask(true, 0, 5*time.Second)
			time.Sleep(4 * time.Second)
			ask(true, 0, time.Second)
			time.Sleep(time.Second - 7*time.Millisecond)
			ask(true, 0, 0)
			time.Sleep(7 * time.Millisecond)
			ask(false, 1, 0)
			ask(false, 1, 0)
			ask(true, 1, 10*time.Second)
			ask(true, 0, 10*time.Second)
			longer := short
			longer.For = 6 * time.Second
			other := must(l.With(WithBan(set[0], longer)))(t)
			if d := must(other.Take(t.Context(), "s"))(t); d.Banned() {
				t.Errorf("under another ban: got %+v, want what is remembered of the first to say nothing", d)
			}
			if !must(l.Unban(t.Context(), "s"))(t) {
				t.Error("Unban of a remembered ban: got found false, want true")
			}
			ask(false, 1, 0) // at once, in this process
		}
	})
}

// TestBansOfOthersCountNothing: while an enforced policy's ban lasts, no other policy
// counts its denials. While a shadow's ban lasts, the enforced policies do. Each policy
// has its own record.
func TestBansOfOthersCountNothing(t *testing.T) {
	t.Parallel()
	m, rdb := newServer(t)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m.SetTime(now)
	first := WithBan(FixedWindow{Name: "first", Limit: 1, Window: time.Hour}, Ban{After: 1, Within: time.Hour, For: time.Minute})
	second := WithBan(FixedWindow{Name: "second", Limit: 1, Window: time.Hour}, Ban{After: 3, Within: time.Hour, For: time.Hour})
	for name, c := range map[string]struct {
		policies []Policy
		bannedAt int // the request at which the second bans
	}{
		"enforced":  {[]Policy{first, second}, 6}, // the 2nd, the 4th and the 6th count, when no ban lasts
		"in shadow": {[]Policy{Shadow(first), second}, 4},
	} {
		l := must(New(rdb, strings.ReplaceAll(name, " ", "-"), c.policies, closed(5*time.Second)))(t)
		m.SetTime(now)
		for n := 1; n <= 7; n++ {
			if n > 2 && n%2 == 0 { // the ban of the first is over
				m.SetTime(now.Add(time.Duration(n/2) * time.Minute))
			}
			var banned bool
			d := must(l.Take(t.Context(), "s"))(t)
			for s := range d.States() {
				banned = banned || s.Policy == "second" && s.Banned
			}
			if want := n >= c.bannedAt; banned != want {
				t.Errorf("%s, request %d: the second policy: got banned %t, want %t", name, n, banned, want)
			}
		}
	}
}

// TestBanKeepsWhatWasCounted: a policy keeps its key when it gets a ban, and a ban with
// other numbers has another record.
func TestBanKeepsWhatWasCounted(t *testing.T) {
	t.Parallel()
	_, rdb := newServer(t)
	p := FixedWindow{Limit: 1, Window: time.Hour}
	l := must(New(rdb, "plans", []Policy{p}, closed(5*time.Second)))(t)
	take(t, l, "s", 1)
	once := Ban{After: 1, Within: time.Hour, For: time.Hour}
	with := must(l.With(WithBan(p, once)))(t)
	if d := must(with.Take(t.Context(), "s"))(t); d.Allowed || !d.Banned() {
		t.Errorf("with a ban: got %+v, want it to find the window full", d)
	}
	if again := must(l.With(WithBan(&p, once)))(t); again != with {
		t.Error("equal policies with equal bans: got two limiters, want one")
	}
	once.For = time.Minute
	if other := must(l.With(WithBan(p, once)))(t); other == with || must(other.Banned(t.Context(), "s"))(t) != 0 {
		t.Error("another ban: got the limiter or the record of the first, want its own")
	}
}

// TestEventsTellOfBans: events report the denial that begins a ban, the denials by a ban
// (also from memory and without Redis), and those that a shadow's ban would make.
func TestEventsTellOfBans(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		var heard observations
		window, long := FixedWindow{Name: "w", Limit: 1, Window: time.Hour}, Ban{After: 3, Within: time.Hour, For: time.Hour}
		opts := &Options{Budget: 5 * time.Second, RememberDenials: time.Minute}
		var away redistest.AbsentClient
		away.Gone.Store(true)
		l := must(New(heard.of(t, rdb, prefix), "seen", []Policy{WithBan(window, long)}, opts))(t)
		local := must(New(heard.of(t, &away, prefix), "away", []Policy{WithBan(window, long)}, opts))(t)
		shadow := must(New(heard.of(t, rdb, prefix), "shadow", []Policy{WithBan(Shadow(window), long)}, opts))(t)
		for _, asked := range []*Limiter{l, local, shadow} {
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

// TestDenialsBeforeTheClockWasSetBack count for no longer than others: the next request
// after it has their record begin at that moment.
func TestDenialsBeforeTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	m, rdb := newServer(t)
	m.ClockTTL(false) // a key that ends by a clock that was set back stays
	l := must(New(rdb, "n", []Policy{WithBan(FixedWindow{Limit: 10, Window: time.Hour}, Ban{After: 2, Within: time.Minute, For: time.Hour})}, closed(10*time.Second)))(t)
	now := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	for i, c := range []struct {
		pause           time.Duration
		cost            int64
		allowed, banned bool
	}{
		{0, 5, true, false}, {0, 9, false, false}, // the first denial
		{-24 * time.Hour, 1, true, false},
		{2 * time.Minute, 9, false, false}, // again the first
		{59 * time.Second, 9, false, true}, // the second
	} {
		now = now.Add(c.pause)
		m.SetTime(now)
		if d := must(l.TakeN(t.Context(), "s", c.cost))(t); d.Allowed != c.allowed || d.Banned() != c.banned {
			t.Errorf("request %d, of cost %d: got allowed %t and banned %t, want %t and %t", i, c.cost, d.Allowed, d.Banned(), c.allowed, c.banned)
		}
	}
}
