package limit

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

const day = 24 * time.Hour

// numbered returns policies of n a day.
var numbered = map[string]func(n int64) Policy{
	"window":   func(n int64) Policy { return FixedWindow{Name: "daily", Limit: n, Window: day} },
	"calendar": func(n int64) Policy { return &CalendarWindow{Name: "daily", Limit: n, Every: Day} },
	"log":      func(n int64) Policy { return SlidingLog{Name: "daily", Limit: n, Window: day} },
	"sliding":  func(n int64) Policy { return SlidingWindow{Name: "daily", Limit: n, Window: day} },
	"bucket":   func(n int64) Policy { return TokenBucket{Name: "daily", Rate: n, Per: day} },
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
					first := newTestLocal(t, nil, KeepOnChange(numbered[name](1)))
					with := func(n int64) *Limiter { return must(first.With(KeepOnChange(numbered[name](n))))(t) }
					if where == "on Redis" {
						m := bubble(t)
						with = func(n int64) *Limiter { return inBubble(t, m, "n", KeepOnChange(numbered[name](n))) }
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

// Processes with different numbers together admit no more than the largest numbers allow:
// in any window and, for a bucket, in any time.
func TestDifferentNumbersAdmitNoMore(t *testing.T) {
	t.Parallel()
	type admitted struct{ at, cost int64 }
	minute := time.Minute.Microseconds()
	since := func(all []admitted, from int64) (n int64) {
		for _, a := range all {
			if a.at > from {
				n += a.cost
			}
		}
		return n
	}
	for name, numbers := range changing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := redistest.Rand(t)
			full := 0
			for range max(redistest.Ops(100_000)/200, 1) {
				rules := make([]rule, 3)
				limit, rate := int64(0), 0.0
				for i := range rules {
					rules[i] = must(KeepOnChange(numbers(rng)).compile())(t)
					limit = max(limit, rules[i].id().limit)
					if b, is := rules[i].(*keptBucket); is {
						rate = max(rate, float64(b.drain)/float64(b.per)/micro)
					}
				}
				now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC).UnixMicro()
				cells, into := []*cell{{}}, make([]reading, 1)
				var all []admitted
				for range 200 {
					r := rules[rng.IntN(len(rules))]
					cost := randomCost(rng, r.id().limit)
					takeModel([]rule{r}, cells, now, cost, into)
					s := r.state(into[0], cost)
					if s.Allowed {
						all = append(all, admitted{now, cost})
					} else {
						full++
					}
					for i, from := range all {
						bound := limit
						switch passed := now - from.at; {
						case name == "bucket":
							bound += int64(rate*float64(passed) + 1e-6)
						case name == "log" && passed >= minute:
							continue
						case name == "window" && now-passed < cells[0].from*1000, name == "calendar" && from.at/(60*minute) != now/(60*minute):
							continue
						case name == "sliding" && (passed >= minute || from.at < cells[0].from*1000):
							continue
						}
						if got := since(all[i:], from.at-1); got > bound {
							t.Fatalf("%+v: got %d admitted in %d µs, want at most %d", rules, got, now-from.at, bound)
						}
					}
					now += randomPause(rng, &s, max(grain(r), time.Microsecond)).Microseconds()
				}
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
	window := FixedWindow{Name: "n", Limit: 10, Window: time.Second}
	for name, c := range map[string]struct {
		policy  Policy
		prepaid Prepaid
		says    []string
	}{
		"no name":        {KeepOnChange(FixedWindow{Window: time.Second}), Prepaid{}, []string{"Name is empty", "Limit is 0"}},
		"no policy":      {KeepOnChange((*FixedWindow)(nil)), Prepaid{}, []string{"policies[0] is nil"}},
		"another policy": {KeepOnChange(quickCalendar{}), Prepaid{}, []string{"quickCalendar", "policies of this package"}},
		"prepaid":        {KeepOnChange(window), Prepaid{Most: 10}, []string{"policies[0]", "KeepOnChange cannot be Prepaid"}},
		"sliding":        {KeepOnChange(SlidingWindow{Name: "n", Limit: 1 << 26, Window: time.Second}), Prepaid{}, []string{"Limit is 67108864", "at most 67108863"}},
		"long sliding":   {KeepOnChange(SlidingWindow{Name: "n", Limit: 1_000_000, Window: 30 * day}), Prepaid{}, []string{"Limit and Window", "FixedWindow"}},
		"odd rate":       {KeepOnChange(TokenBucket{Name: "n", Rate: 3, Per: time.Hour + 1, Burst: 1000}), Prepaid{}, []string{"Rate, Per, Burst and MaxDebt", "whole microseconds"}},
		"large burst":    {KeepOnChange(TokenBucket{Name: "n", Rate: 10, Per: day, Burst: 270_000}), Prepaid{}, []string{"smaller Burst"}},
		"large rate":     {KeepOnChange(TokenBucket{Name: "n", Rate: 1 << 40, Per: time.Second, Burst: 1}), Prepaid{}, []string{"Rate, Per, Burst"}},
		"no rate":        {KeepOnChange(&TokenBucket{Name: "n", Burst: -1}), Prepaid{}, []string{"Rate is 0", "Per is 0s", "Burst is -1"}},
	} {
		_, err := New(rdb, "n", []Policy{c.policy}, &Options{Prepaid: c.prepaid})
		for _, part := range c.says {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want an error with %q", name, err, part)
			}
		}
	}
	shanghai := zone(t, "Asia/Shanghai")
	for want, policies := range map[string][2]Policy{
		"n!kept-bucket":                     {TokenBucket{Name: "n", Rate: 1, Per: time.Second}, &TokenBucket{Name: "n", Rate: 2, Per: time.Hour, Burst: 7, MaxDebt: 3}},
		"n!kept-window-1s":                  {window, FixedWindow{Name: "n", Limit: 1, Window: time.Second, MaxDebt: 1}},
		"n!kept-sliding-1m":                 {SlidingWindow{Name: "n", Limit: 1, Window: time.Minute}, &SlidingWindow{Name: "n", Limit: 2, Window: time.Minute}},
		"n!kept-log-1h":                     {SlidingLog{Name: "n", Limit: 1, Window: time.Hour}, Shadow(KeepOnChange(SlidingLog{Name: "n", Limit: 2, Window: time.Hour}))},
		"n!kept-window-1m":                  {Shadow(&FixedWindow{Name: "n", Limit: 1, Window: time.Minute}), PerRequest(FixedWindow{Name: "n", Limit: 2, Window: time.Minute})},
		"n!kept-calendar-day-Asia.Shanghai": {CalendarWindow{Name: "n", Limit: 1, Every: Day, Location: shanghai}, &CalendarWindow{Name: "n", Limit: 2, Every: Day, Location: shanghai, MaxDebt: 1}},
	} {
		a, b := newTestLocal(t, nil, KeepOnChange(policies[0])), newTestLocal(t, nil, KeepOnChange(KeepOnChange(policies[1])))
		one, other := a.rules[0].id(), b.rules[0].id()
		if one.tail != want || other.tail != want || a.signature == b.signature {
			t.Errorf("got the keys %s and %s, signed %s and %s, want %s of both, and two signatures", one.tail, other.tail, a.signature, b.signature, want)
		}
		_, watched := policies[0].(shadowed)
		_, once := policies[1].(perRequest)
		if one.shadow != watched || other.once != once {
			t.Errorf("%s: got shadow %t and counted by request %t, want %t and %t", want, one.shadow, other.once, watched, once)
		}
	}
}

// A remembered denial holds only for its own numbers.
func TestDenialsOfOtherNumbersAreNotRemembered(t *testing.T) {
	t.Parallel()
	for name, of := range numbered {
		_, rdb := newServer(t)
		ten := must(New(rdb, name, []Policy{KeepOnChange(of(10))}, &Options{Budget: time.Minute, Fail: store.FailClosed, RememberDenials: time.Second}))(t)
		twenty := must(ten.With(KeepOnChange(of(20))))(t)
		take(t, ten, "s", 10)
		for range 2 {
			if d := must(ten.Take(t.Context(), "s"))(t); d.Allowed {
				t.Errorf("%s: the 11th of 10: got it allowed, want a denial", name)
			}
		}
		take(t, twenty, "s", 10)
	}
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
			record[0] = integer(99 * micro).(string)
			rdb.Set(t.Context(), key, strings.Join(record, ":"), redis.KeepTTL)
		}, 20, false},
	} {
		for _, beside := range [][]Policy{nil, {Shadow(FixedWindow{Name: "beside", Limit: 100, Window: time.Hour})}} {
			m, rdb := newServer(t)
			of := func(n int64) *clocked {
				return newClocked(t, m, rdb, "heals", append([]Policy{KeepOnChange(numbered["bucket"](n))}, beside...)...)
			}
			ten, twenty := of(10), of(20)
			take(t, twenty.Limiter, "s", 15)
			key := ten.remote.keys(ten.Limiter, "s")[0]
			c.spoil(key, rdb, ten.pause)
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
			ten.pause(whole + 2*time.Millisecond)
			if n := rdb.Exists(t.Context(), key).Val(); n != 0 {
				t.Errorf("%s: after the debt is gone: got the key still there, want it gone", name)
			}
			take(t, ten.Limiter, "s", 10)
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
		"5000000:1:5:0:5000000":            false,
		"5000000:1:0:0:5000000":            false,
		"5000000:" + huge + ":1:1:5000000": false,
		huge + ":1:5:5:" + huge:            true,
		"5000000:1:" + huge + ":5:5000000": false,
		"5000000:1:5:" + huge + ":5000000": true,
		huge + ":" + huge + ":1:1:" + huge: true,
		"-5:1:1:1:1":                       true,
		"nan":                              true,
		"":                                 true,
		"5000000:1:5:5:0":                  false,
		"00:00:00:00:00":                   false,
	} {
		for _, beside := range [][]Policy{nil, {Shadow(FixedWindow{Name: "beside", Limit: 100, Window: time.Hour})}} {
			m, rdb := newServer(t)
			c := newClocked(t, m, rdb, "odd", append([]Policy{KeepOnChange(numbered["bucket"](10))}, beside...)...)
			taken := must(c.Take(t.Context(), "s"))(t)
			key := c.remote.keys(c.Limiter, "s")[0]
			rdb.Set(t.Context(), key, record, time.Hour)
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
	m, rdb := newServer(t)
	c := newClocked(t, m, rdb, "drift", KeepOnChange(TokenBucket{Name: "fast", Rate: 1_000_000, Per: time.Millisecond, Burst: 1e9}))
	c.take(t, 1e9)
	rng, counts := redistest.Rand(t), map[int64]bool{}
	for range 100 {
		pause := time.Duration(1+rng.IntN(900_000)) * time.Microsecond
		c.pause(pause)
		if d := c.take(t, pause.Microseconds()*1000); !d.Allowed || d.Remaining != 0 {
			t.Fatalf("after %v: got %+v, want what has drained to be taken, and nothing to be left", pause, d)
		}
		if counts[c.cells[0].from] = true; c.cells[0].n >= exact {
			t.Fatalf("the count of the record: got %d, want it below 2^53", c.cells[0].n)
		}
	}
	if len(counts) < 5 {
		t.Errorf("beginnings of the count: got %d, want at least 5", len(counts))
	}
}
