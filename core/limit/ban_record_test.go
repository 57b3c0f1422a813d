package limit_test

import (
	"errors"
	"fmt"
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

// TestBanWithoutRedis: the process bans by the denials that it has seen itself, and by
// the bans that were made in it.
func TestBanWithoutRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		l := must(limit.New(redistest.BubbleClient(t, m), "away", []limit.Policy{limit.WithBan(limit.FixedWindow{Limit: 1, Window: time.Hour}, short)}, nil))(t)
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
			hourly := limit.Ban{After: 2, Within: time.Hour, For: time.Hour}
			for i, policies := range setsOf([]limit.Policy{
				limit.WithBan(limit.FixedWindow{Name: "w", Limit: 1, Window: time.Hour}, hourly), limit.WithBan(limit.SlidingLog{Name: "l", Limit: 1, Window: time.Hour}, hourly),
			}) {
				l := must(limit.New(st, fmt.Sprint("refused", i), policies, closed(patience)))(t)
				must(l.Take(t.Context(), "s"))(t)
				before := must(l.Take(t.Context(), "s"))(t)
				if before.Allowed || before.Banned() {
					t.Fatalf("the first denial: got %+v, want no ban", before)
				}
			}
			refuse(t, srv, user)
			for i, policies := range setsOf([]limit.Policy{
				limit.WithBan(limit.FixedWindow{Name: "w", Limit: 1, Window: time.Hour}, hourly), limit.WithBan(limit.SlidingLog{Name: "l", Limit: 1, Window: time.Hour}, hourly),
			}) {
				l := must(limit.New(st, fmt.Sprint("refused", i), policies, closed(patience)))(t)
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
	m, rdb := redistest.Miniredis(t)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m.SetTime(now)
	l := must(limit.New(rdb, "heals", []limit.Policy{limit.WithBan(limit.FixedWindow{Limit: 1, Window: 1000 * time.Hour}, short)}, closed(patience)))(t)
	for range 3 {
		must(l.Take(t.Context(), "s"))(t)
	}
	key := redistest.KeysOf(t, rdb, "neap:limit:heals:{s}:window-1-1000h!")[0]
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
	window, _, _ := strings.Cut(key, "!")
	m.SetTime(now.Add(-24*time.Hour + short.For))
	must(rdb.Persist(t.Context(), key).Result())(t)
	must(rdb.Del(t.Context(), window).Result())(t)
	if d := must(l.Take(t.Context(), "s"))(t); !d.Allowed || m.TTL(key) == 0 {
		t.Log(m.Dump())
		t.Errorf("after the ban has ended, a request with room: got %+v and a record that lives for %v, want it granted and a time to live", d, m.TTL(key))
	}
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
		rdb, calls := redistest.Counted(t)
		policies := []limit.Policy{limit.WithBan(limit.FixedWindow{Name: "w", Limit: 1, Window: time.Hour}, short), limit.FixedWindow{Name: "plain", Limit: 1, Window: time.Hour}}
		for i, set := range [][]limit.Policy{policies, policies[:1]} {
			l := must(limit.New(rdb, fmt.Sprint("bans", i), set, &limit.Options{Budget: time.Minute, Fail: store.FailClosed, RememberDenials: time.Minute}))(t)
			ask := func(banned bool, asked int64, retry time.Duration) {
				t.Helper()
				before := calls.Load()
				d := must(l.Take(t.Context(), "s"))(t)
				state := first(d)
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
			other := must(l.With(limit.WithBan(set[0], longer)))(t)
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
	m, rdb := redistest.Miniredis(t)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m.SetTime(now)
	first := limit.WithBan(limit.FixedWindow{Name: "first", Limit: 1, Window: time.Hour}, limit.Ban{After: 1, Within: time.Hour, For: time.Minute})
	second := limit.WithBan(limit.FixedWindow{Name: "second", Limit: 1, Window: time.Hour}, limit.Ban{After: 3, Within: time.Hour, For: time.Hour})
	for name, c := range map[string]struct {
		policies []limit.Policy
		bannedAt int // the request at which the second bans
	}{
		"enforced":  {[]limit.Policy{first, second}, 6}, // the 2nd, the 4th and the 6th count, when no ban lasts
		"in shadow": {[]limit.Policy{limit.Shadow(first), second}, 4},
	} {
		l := must(limit.New(rdb, strings.ReplaceAll(name, " ", "-"), c.policies, closed(patience)))(t)
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

// TestABanThatFailsBansNothing: all records are read before one is written.
func TestABanThatFailsBansNothing(t *testing.T) {
	t.Parallel()
	m, rdb := redistest.Miniredis(t)
	ban := limit.Ban{After: 1, Within: time.Minute, For: time.Minute, Max: time.Hour}
	l := must(limit.New(rdb, "n", []limit.Policy{
		limit.WithBan(limit.FixedWindow{Name: "a", Limit: 9, Window: time.Hour}, ban),
		limit.WithBan(limit.FixedWindow{Name: "b", Limit: 9, Window: time.Hour}, ban),
	}, closed(patience)))(t)
	must(0, l.Ban(t.Context(), "s", time.Minute))(t)
	keys := m.Keys()
	if len(keys) != 2 {
		t.Fatalf("got the keys %q, want a ban of each policy", keys)
	}
	for i, foreign := range keys {
		m.FlushAll()
		must(m.Lpush(foreign, "no ban"))(t)
		if err := l.Ban(t.Context(), "s", time.Minute); err == nil || m.Exists(keys[1-i]) {
			t.Errorf("with a list as %s: got %v, and the other stored: %t, want an error and nothing stored", foreign, err, m.Exists(keys[1-i]))
		}
	}
}

// TestBanKeepsWhatWasCounted: a policy keeps its key when it gets a ban, and a ban with
// other numbers has another record.
func TestBanKeepsWhatWasCounted(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	p := limit.FixedWindow{Limit: 1, Window: time.Hour}
	l := must(limit.New(rdb, "plans", []limit.Policy{p}, closed(patience)))(t)
	take(t, l, "s", 1)
	once := limit.Ban{After: 1, Within: time.Hour, For: time.Hour}
	with := must(l.With(limit.WithBan(p, once)))(t)
	if d := must(with.Take(t.Context(), "s"))(t); d.Allowed || !d.Banned() {
		t.Errorf("with a ban: got %+v, want it to find the window full", d)
	}
	if again := must(l.With(limit.WithBan(&p, once)))(t); again != with {
		t.Error("equal policies with equal bans: got two limiters, want one")
	}
	once.For = time.Minute
	if other := must(l.With(limit.WithBan(p, once)))(t); other == with || must(other.Banned(t.Context(), "s"))(t) != 0 {
		t.Error("another ban: got the limiter or the record of the first, want its own")
	}
}

// TestDenialsBeforeTheClockWasSetBack count for no longer than others: the next request
// after it has their record begin at that moment.
func TestDenialsBeforeTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	m, rdb := redistest.Miniredis(t)
	m.ClockTTL(false) // a key that ends by a clock that was set back stays
	l := must(limit.New(rdb, "n", []limit.Policy{limit.WithBan(limit.FixedWindow{Limit: 10, Window: time.Hour}, limit.Ban{After: 2, Within: time.Minute, For: time.Hour})}, closed(patience)))(t)
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
