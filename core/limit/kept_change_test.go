package limit_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// numbered returns policies of n a day.
var numbered = map[string]func(n int64) limit.Policy{
	"window":   func(n int64) limit.Policy { return limit.FixedWindow{Name: "daily", Limit: n, Window: day} },
	"calendar": func(n int64) limit.Policy { return &limit.CalendarWindow{Name: "daily", Limit: n, Every: limit.Day} },
	"log":      func(n int64) limit.Policy { return limit.SlidingLog{Name: "daily", Limit: n, Window: day} },
	"sliding":  func(n int64) limit.Policy { return limit.SlidingWindow{Name: "daily", Limit: n, Window: day} },
	"bucket":   func(n int64) limit.Policy { return limit.TokenBucket{Name: "daily", Rate: n, Per: day} },
}

// What was used under the old numbers counts under the new ones, and a denial says when to ask again.
func TestChangedNumbersKeepWhatWasUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pause       time.Duration // until the numbers change
		after20     time.Duration // of 20, until there is one more
		after15of10 time.Duration
	}{
		"window":   {6 * time.Hour, 18 * time.Hour, 18 * time.Hour},
		"calendar": {6 * time.Hour, 18 * time.Hour, 18 * time.Hour},
		"log":      {6 * time.Hour, 18 * time.Hour, 18 * time.Hour},
		"sliding":  {6 * time.Hour, 18*time.Hour + day/20, 18*time.Hour + day - day*9/15},
		"bucket":   {0, day / 20, 6 * day / 20}, // what is owed drains at the 20 a day by which it was charged
	} {
		for _, where := range []string{"in process", "on Redis"} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { // 2000-01-01 00:00:00 UTC
					first := newTestLocal(t, nil, limit.KeepOnChange(numbered[name](1)))
					with := func(n int64) *limit.Limiter { return must(first.With(limit.KeepOnChange(numbered[name](n))))(t) }
					if where == "on Redis" {
						m := redistest.Bubble(t)
						with = func(n int64) *limit.Limiter { return inBubble(t, m, "n", limit.KeepOnChange(numbered[name](n))) }
					}
					ten, twenty := with(10), with(20)
					take(t, ten, "rises", 10)
					take(t, twenty, "falls", 15)
					time.Sleep(c.pause)

					take(t, twenty, "rises", 10)
					if d, err := twenty.Take(t.Context(), "rises"); err != nil || d.Allowed || d.RetryAfter != c.after20 {
						t.Errorf("the 21st of 20: got %+v, %v, want a denial for %v", d, err, c.after20)
					}
					denied := func(retry time.Duration) {
						t.Helper()
						peek := must(ten.Peek(t.Context(), "falls"))(t)
						d, err := ten.Take(t.Context(), "falls")
						if err != nil || d.Allowed || d.RetryAfter != retry || d.Limit != 10 || d.Remaining != 0 || peek.Allowed || peek.RetryAfter != retry {
							t.Errorf("after 15, with a limit of 10: got %+v, %v, and from a peek %+v, want a denial for %v", d, err, peek, retry)
						}
						if d, err := ten.TakeN(t.Context(), "falls", 0); err != nil || !d.Allowed {
							t.Errorf("a cost of 0: got %+v, %v, want it allowed", d, err)
						}
					}
					denied(c.after15of10)
					time.Sleep(c.after15of10 - time.Millisecond)
					denied(time.Millisecond)
					time.Sleep(time.Millisecond)
					take(t, ten, "falls", 1)
				})
			})
		}
	}
}

// Limiters with different numbers together admit no more than the largest numbers allow: in any
// window and, for a bucket, in any time.
func TestDifferentNumbersAdmitNoMore(t *testing.T) {
	t.Parallel()
	type admitted struct {
		at     time.Time
		window time.Time // its end
		cost   int64
	}
	for name, of := range numbered {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := redistest.Rand(t)
			full := 0
			for range max(redistest.Ops(100_000)/200, 1) {
				synctest.Test(t, func(t *testing.T) {
					most := int64(0)
					var all []*limit.Limiter
					for range 3 {
						n := 1 + rng.Int64N(20)
						most = max(most, n)
						if len(all) == 0 {
							all = append(all, newTestLocal(t, nil, limit.KeepOnChange(of(n))))
						} else {
							all = append(all, must(all[0].With(limit.KeepOnChange(of(n))))(t))
						}
					}
					var granted []admitted
					for range 200 {
						l := all[rng.IntN(len(all))]
						cost := randomCost(rng, mostOf(t, l))
						d := must(l.TakeN(t.Context(), "s", cost))(t)
						now := time.Now()
						if d.Allowed {
							granted = append(granted, admitted{now, now.Add(d.ResetAfter), cost})
						} else {
							full++
						}
						sum := int64(0)
						for _, g := range slices.Backward(granted) {
							passed := now.Sub(g.at)
							bound := most
							switch {
							case name == "bucket":
								bound += int64(float64(most)*float64(passed)/float64(day) + 1e-6)
							case name == "log" && passed >= day, name != "log" && !g.window.Equal(granted[len(granted)-1].window):
								continue
							}
							if sum += g.cost; sum > bound {
								t.Fatalf("%s: got %d admitted in %v, want at most %d", name, sum, passed, bound)
							}
						}
						time.Sleep(randomPause(rng, first(d), time.Millisecond))
					}
				})
			}
			if full == 0 {
				t.Error("in all rounds: got no denial, want some")
			}
		})
	}
}

func TestKeepOnChangeIsChecked(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { rdb.Close() })
	window := limit.FixedWindow{Name: "n", Limit: 10, Window: time.Second}
	for name, c := range map[string]struct {
		policy  limit.Policy
		prepaid limit.Prepaid
		says    []string
	}{
		"no name":        {limit.KeepOnChange(limit.FixedWindow{Window: time.Second}), limit.Prepaid{}, []string{"Name is empty", "Limit is 0"}},
		"no policy":      {limit.KeepOnChange((*limit.FixedWindow)(nil)), limit.Prepaid{}, []string{"policies[0] is nil"}},
		"another policy": {limit.KeepOnChange(another{}), limit.Prepaid{}, []string{"another", "Name is empty", "Limit is 0"}},
		"prepaid":        {limit.KeepOnChange(window), limit.Prepaid{Most: 10}, []string{"policies[0]", "KeepOnChange cannot be Prepaid"}},
		"sliding":        {limit.KeepOnChange(limit.SlidingWindow{Name: "n", Limit: 1 << 26, Window: time.Second}), limit.Prepaid{}, []string{"Limit is 67108864", "at most 67108863"}},
		"long sliding":   {limit.KeepOnChange(limit.SlidingWindow{Name: "n", Limit: 1_000_000, Window: 30 * day}), limit.Prepaid{}, []string{"Limit and Window", "FixedWindow"}},
		"odd rate":       {limit.KeepOnChange(limit.TokenBucket{Name: "n", Rate: 3, Per: time.Hour + 1, Burst: 1000}), limit.Prepaid{}, []string{"Rate, Per, Burst and MaxDebt", "whole microseconds"}},
		"large burst":    {limit.KeepOnChange(limit.TokenBucket{Name: "n", Rate: 10, Per: day, Burst: 270_000}), limit.Prepaid{}, []string{"smaller Burst"}},
		"large rate":     {limit.KeepOnChange(limit.TokenBucket{Name: "n", Rate: 1 << 40, Per: time.Second, Burst: 1}), limit.Prepaid{}, []string{"Rate, Per, Burst"}},
		"no rate":        {limit.KeepOnChange(&limit.TokenBucket{Name: "n", Burst: -1}), limit.Prepaid{}, []string{"Rate is 0", "Per is 0s", "Burst is -1"}},
	} {
		_, err := limit.New(rdb, "n", []limit.Policy{c.policy}, &limit.Options{Prepaid: c.prepaid})
		for _, part := range c.says {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want an error with %q", name, err, part)
			}
		}
	}
	l := newTestLocal(t, nil, limit.KeepOnChange(limit.Shadow(window)), limit.KeepOnChange(limit.PerRequest(limit.FixedWindow{Name: "requests", Limit: 3, Window: time.Hour})))
	d := must(l.TakeN(t.Context(), "s", 20))(t)
	for s := range d.States() {
		if s.Shadow != (s.Policy == "n") || s.Policy == "requests" && s.Remaining != 2 {
			t.Errorf("KeepOnChange of a Shadow and of a PerRequest: got %+v, want a shadow, and 2 of 3 requests left", s)
		}
	}
	shanghai := limit.Zone("Asia/Shanghai")
	for want, policies := range map[string][2]limit.Policy{
		"n!kept-bucket":                     {limit.TokenBucket{Name: "n", Rate: 1, Per: time.Second}, &limit.TokenBucket{Name: "n", Rate: 2, Per: time.Hour, Burst: 7, MaxDebt: 3}},
		"n!kept-window-1s":                  {window, limit.FixedWindow{Name: "n", Limit: 1, Window: time.Second, MaxDebt: 1}},
		"n!kept-sliding-1m":                 {limit.SlidingWindow{Name: "n", Limit: 1, Window: time.Minute}, &limit.SlidingWindow{Name: "n", Limit: 2, Window: time.Minute}},
		"n!kept-log-1h":                     {limit.SlidingLog{Name: "n", Limit: 1, Window: time.Hour}, limit.Shadow(limit.KeepOnChange(limit.SlidingLog{Name: "n", Limit: 2, Window: time.Hour}))},
		"n!kept-window-1m":                  {limit.Shadow(&limit.FixedWindow{Name: "n", Limit: 1, Window: time.Minute}), limit.PerRequest(limit.FixedWindow{Name: "n", Limit: 2, Window: time.Minute})},
		"n!kept-calendar-day-Asia.Shanghai": {limit.CalendarWindow{Name: "n", Limit: 1, Every: limit.Day, Location: shanghai}, &limit.CalendarWindow{Name: "n", Limit: 2, Every: limit.Day, Location: shanghai, MaxDebt: 1}},
	} {
		m, rdb := redistest.Miniredis(t)
		for _, p := range []limit.Policy{limit.KeepOnChange(policies[0]), limit.KeepOnChange(limit.KeepOnChange(policies[1]))} {
			must(must(limit.New(rdb, "n", []limit.Policy{p}, closed(time.Minute)))(t).Take(t.Context(), "s"))(t)
			if keys := m.Keys(); !slices.Equal(keys, []string{"neap:limit:n:{s}:" + want}) {
				t.Errorf("%+v: got the keys %q, want one that ends in %s", p, keys, want)
			}
		}
	}
}

// A remembered denial holds only for its own numbers.
func TestDenialsOfOtherNumbersAreNotRemembered(t *testing.T) {
	t.Parallel()
	for name, of := range numbered {
		_, rdb := redistest.Miniredis(t)
		ten := must(limit.New(rdb, name, []limit.Policy{limit.KeepOnChange(of(10))}, &limit.Options{Budget: time.Minute, Fail: store.FailClosed, RememberDenials: time.Second}))(t)
		twenty := must(ten.With(limit.KeepOnChange(of(20))))(t)
		take(t, ten, "s", 10)
		for range 2 {
			if d := must(ten.Take(t.Context(), "s"))(t); d.Allowed {
				t.Errorf("%s: the 11th of 10: got it allowed, want a denial", name)
			}
		}
		take(t, twenty, "s", 10)
	}
}

// TestAProcessGivesNothingBackUnderOtherNumbers: a bucket with other numbers has charged since.
func TestAProcessGivesNothingBackUnderOtherNumbers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ten := newTestLocal(t, nil, limit.KeepOnChange(numbered["bucket"](10)))
		twenty := must(ten.With(limit.KeepOnChange(numbered["bucket"](20))))(t)
		d := take(t, ten, "s", 5)
		take(t, twenty, "s", 1)
		if err := d.Refund(t.Context()); !errors.Is(err, limit.ErrRefund) {
			t.Errorf("a refund of 5 after another bucket has charged 1: got %v, want ErrRefund", err)
		}
		if d := take(t, twenty, "s", 1); d.Remaining != 13 {
			t.Errorf("after it, and one more: got %d of 20 left, want 13", d.Remaining)
		}
	})
}

// A denial does not rewrite the record, except that it repairs a time to live that is too
// long. It does not cut a debt to the smaller capacity.
func TestKeptBucketHeals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(key string, rdb *redis.Client, by func(time.Duration))
		owed  int64 // permits, afterwards
		same  bool  // the record
	}{
		"nothing is wrong":      {func(string, *redis.Client, func(time.Duration)) {}, 15, true},
		"no time to live":       {func(key string, rdb *redis.Client, _ func(time.Duration)) { rdb.Persist(t.Context(), key) }, 15, false},
		"a long one":            {func(key string, rdb *redis.Client, _ func(time.Duration)) { rdb.Expire(t.Context(), key, 40*day) }, 15, false},
		"the clock is set back": {func(_ string, _ *redis.Client, by func(time.Duration)) { by(-day) }, 15, false},
		"more than anyone allows": {func(key string, rdb *redis.Client, _ func(time.Duration)) {
			record := strings.Split(rdb.Get(t.Context(), key).Val(), ":")
			record[0] = "99000000"
			rdb.Set(t.Context(), key, strings.Join(record, ":"), redis.KeepTTL)
		}, 20, false},
	} {
		for _, beside := range [][]limit.Policy{nil, {limit.Shadow(limit.FixedWindow{Name: "beside", Limit: 100, Window: time.Hour})}} {
			m, rdb := redistest.Miniredis(t)
			now := time.Date(2026, 11, 20, 8, 0, 0, 123e6, time.UTC)
			pause := func(d time.Duration) {
				now = now.Add(d)
				m.SetTime(now)
			}
			pause(0)
			of := func(n int64) *limit.Limiter {
				return must(limit.New(rdb, "heals", append([]limit.Policy{limit.KeepOnChange(numbered["bucket"](n))}, beside...), closed(time.Minute)))(t)
			}
			ten, twenty := of(10), of(20)
			take(t, twenty, "s", 15)
			key := keptBucketOf("heals")
			c.spoil(key, rdb, pause)
			before := rdb.Get(t.Context(), key).Val()
			if d := must(ten.Take(t.Context(), "s"))(t); d.Allowed || d.RetryAfter != time.Duration(c.owed-9)*day/20 {
				t.Errorf("%s: got %+v, want a denial for %v", name, d, time.Duration(c.owed-9)*day/20)
			}
			whole := time.Duration(c.owed) * day / 20
			if left := rdb.PTTL(t.Context(), key).Val(); left < whole || left > whole+2*time.Millisecond {
				t.Errorf("%s: the time to live: got %v, want %v, and a millisecond or two more", name, left, whole)
			}
			if after := rdb.Get(t.Context(), key).Val(); (after == before) != (c.same || strings.Contains(name, "no time") || strings.Contains(name, "long")) {
				t.Errorf("%s: got the record %s after the denial, and %s before it, want it changed only if it was too large", name, after, before)
			}
			pause(whole + 2*time.Millisecond)
			if n := rdb.Exists(t.Context(), key).Val(); n != 0 {
				t.Errorf("%s: after the debt is gone: got the key still there, want it gone", name)
			}
			take(t, ten, "s", 10)
		}
	}
}

// A record that no policy writes is an error and not a panic. A charge repairs some of
// these.
func TestKeptBucketOfNoPolicy(t *testing.T) {
	t.Parallel()
	const huge = "99999999999999999999999"
	for record, fails := range map[string]bool{
		"5000000:1:0:5:5000000":            true,
		"5000000:1:5:0:5000000":            true,
		"5000000:1:0:0:5000000":            true,
		"5000000:" + huge + ":1:1:5000000": true,
		huge + ":1:5:5:" + huge:            true,
		"5000000:1:" + huge + ":5:5000000": true,
		"5000000:1:5:" + huge + ":5000000": true,
		huge + ":" + huge + ":1:1:" + huge: true,
		"-5:1:1:1:1":                       true,
		"nan":                              true,
		"":                                 true,
		"5000000:1:5:5:0":                  false,
		"00:00:00:00:00":                   true,
	} {
		for _, beside := range [][]limit.Policy{nil, {limit.Shadow(limit.FixedWindow{Name: "beside", Limit: 100, Window: time.Hour})}} {
			_, rdb := redistest.Miniredis(t)
			c := must(limit.New(rdb, "odd", append([]limit.Policy{limit.KeepOnChange(numbered["bucket"](10))}, beside...), closed(time.Minute)))(t)
			taken := must(c.Take(t.Context(), "s"))(t)
			rdb.Set(t.Context(), keptBucketOf("odd"), record, time.Hour)
			d, err := c.Peek(t.Context(), "s")
			if errors.Is(err, script.ErrFailed) != fails || err == nil && (d.RetryAfter < 0 || d.ResetAfter < 0 || d.Remaining < 0) {
				t.Errorf("%s: a peek: got %+v, %v, want an error: %t", record, d, err, fails)
			}
			_, _ = taken.Settle(t.Context(), 0)
			_, _ = c.TakeN(t.Context(), "s", 10)
		}
	}
}

// A bucket that is never empty counts exactly for as long as the numbers allow, and then
// its count begins again. What drains can be taken, and no more.
func TestKeptBucketNeverDrifts(t *testing.T) {
	t.Parallel()
	m, rdb := redistest.Miniredis(t)
	l := must(limit.New(rdb, "drift", []limit.Policy{limit.KeepOnChange(limit.TokenBucket{Name: "daily", Rate: 1_000_000, Per: time.Millisecond, Burst: 1e9})}, closed(time.Minute)))(t)
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	m.SetTime(now)
	take(t, l, "s", 1e9)
	rng, began := redistest.Rand(t), map[string]bool{}
	for range 100 {
		pause := time.Duration(1+rng.IntN(900_000)) * time.Microsecond
		now = now.Add(pause)
		m.SetTime(now)
		if d := take(t, l, "s", pause.Microseconds()*1000); d.Remaining != 0 {
			t.Fatalf("after %v: got %+v, want nothing to be left", pause, d)
		}
		record := strings.Split(must(m.Get(keptBucketOf("drift")))(t), ":") // what was charged, since when, and by which numbers
		if charged := must(strconv.ParseInt(record[0], 10, 64))(t); charged >= 1<<53 {
			t.Fatalf("the count of the record: got %d, want it below 2^53", charged)
		}
		began[record[1]] = true
	}
	if len(began) < 5 {
		t.Errorf("beginnings of the count: got %d, want at least 5", len(began))
	}
}

// keptBucketOf is the key of the bucket named daily of a limiter.
func keptBucketOf(name string) string { return "neap:limit:" + name + ":{s}:daily!kept-bucket" }

// another is a policy that is not of package limit.
type another struct{ limit.CalendarWindow }
