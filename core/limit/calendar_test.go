package limit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestCalendarWindowIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy limit.CalendarWindow
		says   []string
	}{
		"nothing":       {limit.CalendarWindow{}, []string{"Limit is 0", "Every is 0", "Hour, Day, Week or Month"}},
		"period":        {limit.CalendarWindow{Limit: 1, Every: limit.Month + 1}, []string{"Every is 5"}},
		"the machine's": {limit.CalendarWindow{Limit: 1, Every: limit.Day, Location: time.Local}, []string{`Location is "Local"`, "time.LoadLocation"}}, //nolint:gosmopolitan // it is refused
		"nameless":      {limit.CalendarWindow{Limit: 1, Every: limit.Day, Location: time.FixedZone("", 3600)}, []string{`Location is ""`}},
		"fixed":         {limit.CalendarWindow{Limit: 1, Every: limit.Day, Location: time.FixedZone("CEST", 7200)}, []string{`Location is "CEST"`, "time/tzdata"}},
		"a false name":  {limit.CalendarWindow{Limit: 1, Every: limit.Day, Location: time.FixedZone("Europe/Berlin", 3600)}, []string{`Location is "Europe/Berlin", and not the IANA zone`}},
		"too much":      {limit.CalendarWindow{Limit: 1 << 53, Every: limit.Day}, []string{"Limit", "2^52"}},
	} {
		_, err := limit.NewLocal("calendar", []limit.Policy{c.policy}, nil)
		if err == nil {
			t.Errorf("a policy with %s: got no error, want one", name)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want %q in it", name, err, part)
			}
		}
	}
	for want, p := range map[string]limit.CalendarWindow{
		"calendar-5-day-Asia.Shanghai": {Limit: 5, Every: limit.Day, Location: limit.Zone("Asia/Shanghai")},
		"calendar-1-month-UTC":         {Limit: 1, Every: limit.Month},
		"calendar-1-hour-Etc.GMT_8":    {Limit: 1, Every: limit.Hour, Location: limit.Zone("Etc/GMT+8")},
		"calendar-1-week-Etc.GMT-8":    {Limit: 1, Every: limit.Week, Location: limit.Zone("Etc/GMT-8")},
	} {
		m, rdb := redistest.Miniredis(t)
		must(must(limit.New(rdb, "calendar", []limit.Policy{p}, closed(time.Minute)))(t).Take(t.Context(), "s"))(t)
		if keys := m.Keys(); !slices.Equal(keys, []string{"neap:limit:calendar:{s}:" + want}) {
			t.Errorf("%+v: got the keys %q, want one that ends in %s", p, keys, want)
		}
	}
}

// In process, too, a day ends when the clocks of the place say.
func TestCalendarInProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // 2000-01-01 00:00:00 UTC
		day := limit.CalendarWindow{Limit: 2, Every: limit.Day, Location: limit.Zone("Asia/Shanghai")}
		l := must(limit.NewLocal("calendar", []limit.Policy{day}, nil))(t)
		take := func(want bool, retry time.Duration) limit.Decision {
			t.Helper()
			d, err := l.Take(t.Context(), "s")
			if err != nil || d.Allowed != want || d.RetryAfter != retry || first(d).Window != 24*time.Hour {
				t.Errorf("a take: got %+v, %v, want allowed %t, and RetryAfter %v", d, err, want, retry)
			}
			return d
		}
		first := take(true, 0)
		take(true, 0)
		take(false, 16*time.Hour)
		if err := first.Refund(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(16*time.Hour - time.Millisecond)
		last := take(true, 0)
		take(false, time.Millisecond)
		time.Sleep(time.Millisecond)
		take(true, 0)
		if err := last.Refund(t.Context()); !errors.Is(err, limit.ErrRefund) {
			t.Errorf("the refund of yesterday's permit: got %v, want %v", err, limit.ErrRefund)
		}
	})
}

// Permits that were charged ahead end with the day.
func TestPrepaidOfADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 5000
		m := redistest.Bubble(t)
		l := must(limit.New(redistest.BubbleClient(t, m), "day", []limit.Policy{limit.CalendarWindow{Limit: most, Every: limit.Day}},
			&limit.Options{Fail: store.FailClosed, Budget: time.Minute, Prepaid: limit.Prepaid{Most: 500, Term: 10 * time.Second}}))(t)
		time.Sleep(24*time.Hour - 3*time.Second)
		granted := map[int]int64{}
		for range 6000 {
			d, err := l.Take(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			if now := time.Now().UTC().Day(); d.Allowed {
				granted[now]++
				if least := most - d.Remaining; granted[now] > least {
					t.Fatalf("day %d: got %d granted and %d charged, want at least as many charged", now, granted[now], least)
				}
			}
			time.Sleep(time.Millisecond)
		}
		if calls := m.CommandCount(); calls > 3000 || granted[1] < 2500 || granted[2] < 2500 {
			t.Errorf("got %v granted by day with %d calls, want at least 2,500 each day, and some charged ahead", granted, calls)
		}
	})
}

// A process whose clock is far from that of Redis asks once more, and then knows.
func TestCalendarFarFromTheClockOfRedis(t *testing.T) {
	t.Parallel()
	for name, policies := range map[string][]limit.Policy{
		"alone":  {limit.CalendarWindow{Limit: 2, Every: limit.Hour}},
		"in set": {limit.CalendarWindow{Limit: 2, Every: limit.Hour}, limit.TokenBucket{Rate: 5, Per: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, rdb := redistest.Miniredis(t)
			at := time.Date(2028, 2, 29, 23, 59, 0, 0, time.UTC)
			m.SetTime(at)
			client := &counting{UniversalClient: rdb}
			l := must(limit.New(client, "far", policies, closed(time.Minute)))(t)
			if err := l.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			ask := func(cost int64, calls int64, allowed bool, until time.Duration) {
				t.Helper()
				before := client.calls.Load()
				d, err := l.TakeN(t.Context(), "s", cost)
				if err != nil || d.Allowed != allowed || first(d).ResetAfter != until {
					t.Errorf("a take far from the clock of Redis: got %+v, %v, want allowed %t, and the hour to end after %v", d, err, allowed, until)
				}
				if got := client.calls.Load() - before; got != calls {
					t.Errorf("takes far from the clock of Redis: got %d calls, want %d", got, calls)
				}
			}
			ask(2, 1, true, time.Minute) // Warm has asked
			ask(1, 1, false, time.Minute)
			m.SetTime(at.Add(time.Minute))
			ask(1, 1, true, time.Hour)
			m.SetTime(at.Add(-24 * time.Hour)) // the hour of its keys has not begun
			ask(1, 2, true, time.Minute)
		})
	}
}

// Both round trips are within the one budget.
func TestCalendarKeepsTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		client := &counting{UniversalClient: redistest.BubbleClient(t, m)}
		const budget = 50 * time.Millisecond
		l := must(limit.New(client, "budget", []limit.Policy{limit.CalendarWindow{Limit: 2, Every: limit.Hour}}, closed(budget)))(t)
		if d, err := l.Take(t.Context(), "s"); err != nil || !d.Allowed {
			t.Fatalf("the first take: got %+v, %v, want it allowed", d, err)
		}
		m.SetTime(time.Now().Add(-24 * time.Hour))
		client.before = func() { time.Sleep(budget * 3 / 5) }
		began := time.Now()
		_, err := l.Take(t.Context(), "s")
		if took := time.Since(began); !errors.Is(err, script.ErrNotExecuted) || took != budget {
			t.Errorf("a take that needs two calls: got %v after %v, want %v when the budget of %v is over", err, took, script.ErrNotExecuted, budget)
		}
		time.Sleep(budget) // the call that was left behind ends
	})
}

// A clock that leaves the windows again and again is an error, which the failure mode decides.
func TestCalendarUnderAClockThatIsSet(t *testing.T) {
	t.Parallel()
	m, rdb := redistest.Miniredis(t)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	client := &counting{UniversalClient: rdb, before: func() {
		now = now.AddDate(0, 1, 0)
		m.SetTime(now)
	}}
	l := must(limit.New(client, "set", []limit.Policy{limit.CalendarWindow{Limit: 2, Every: limit.Day}}, closed(time.Minute)))(t)
	_, err := l.Take(t.Context(), "s")
	if !errors.Is(err, script.ErrFailed) || !strings.Contains(err.Error(), "is it being set?") {
		t.Errorf("a take under a clock that jumps at each call: got %v, want ErrFailed, and the question whether it is being set", err)
	}
	if keys := m.Keys(); len(keys) > 0 {
		t.Errorf("after a take that failed: got the keys %q, want none", keys)
	}
}

// counting is a client that counts its calls, and does something before each.
type counting struct {
	redis.UniversalClient

	calls  atomic.Int64
	before func()
}

// Process makes the call.
func (c *counting) Process(ctx context.Context, cmd redis.Cmder) error {
	c.calls.Add(1)
	if c.before != nil {
		c.before()
	}
	return c.UniversalClient.Process(ctx, cmd)
}
