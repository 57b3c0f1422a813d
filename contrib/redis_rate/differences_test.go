package redis_rate_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/contrib/redis_rate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/neaptest"
)

// inBubble runs a test on a limiter of NewLimiter and the clock of a bubble.
func inBubble(t *testing.T, test func(t *testing.T, r *neaptest.Redis, l *redis_rate.Limiter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := neaptest.New(t)
		test(t, r, redis_rate.NewLimiter(r.Client()))
	})
}

func remaining(t *testing.T, l *redis_rate.Limiter, key string, rate redis_rate.Limit) int {
	t.Helper()
	return must(l.AllowN(t.Context(), key, rate, 0))(t).Remaining
}

// TestNothingIsLostToRounding takes permits while fractions of others have come back.
func TestNothingIsLostToRounding(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *neaptest.Redis, l *redis_rate.Limiter) {
		rate := redis_rate.Limit{Rate: 3, Burst: 7, Period: time.Second}
		must(l.AllowN(t.Context(), "k", rate, 7))(t)
		granted := 0
		for range 60 { // a sixth of a second is half a permit
			time.Sleep(time.Second / 6)
			granted += must(l.AllowAtMost(t.Context(), "k", rate, 7))(t).Allowed
		}
		if granted != 30 && granted != 29 { // a sixth of a second is rounded down to nanoseconds
			t.Errorf("got %d permits in 10 seconds, want 29 or 30", granted)
		}
		for _, rate := range []redis_rate.Limit{redis_rate.PerSecond(10), redis_rate.PerMinute(7), redis_rate.PerHour(100)} {
			for n := 1; n <= rate.Burst; n++ {
				got := must(l.Allow(t.Context(), rate.String(), rate))(t)
				if got.Allowed != 1 || got.Remaining != rate.Burst-n {
					t.Fatalf("%v, permit %d: got %d granted and %d remaining, want 1 and %d", rate, n, got.Allowed, got.Remaining, rate.Burst-n)
				}
			}
		}
	})
}

// TestWaitingForRetryAfterIsEnough to the nanosecond, and a millisecond less is not.
func TestWaitingForRetryAfterIsEnough(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *neaptest.Redis, l *redis_rate.Limiter) {
		rate := redis_rate.Limit{Rate: 7, Burst: 5, Period: time.Minute}
		calls := map[string]func(string) *redis_rate.Result{
			"Allow":       func(key string) *redis_rate.Result { return must(l.Allow(t.Context(), key, rate))(t) },
			"AllowN":      func(key string) *redis_rate.Result { return must(l.AllowN(t.Context(), key, rate, 3))(t) },
			"AllowAtMost": func(key string) *redis_rate.Result { return must(l.AllowAtMost(t.Context(), key, rate, 3))(t) },
		}
		for name, call := range calls {
			must(l.AllowN(t.Context(), name, rate, 5))(t)
			time.Sleep(time.Second)
			denied := call(name)
			if denied.Allowed != 0 || denied.RetryAfter <= time.Second {
				t.Errorf("%s: got %+v, want a denial for some seconds", name, denied)
			}
			time.Sleep(denied.RetryAfter - time.Millisecond)
			if got := call(name); got.Allowed != 0 {
				t.Errorf("%s a millisecond before the RetryAfter of %v: got %+v, want a denial", name, denied.RetryAfter, got)
			}
			time.Sleep(time.Millisecond)
			if got := call(name); got.Allowed == 0 || got.RetryAfter != -1 {
				t.Errorf("%s after the RetryAfter of %v: got %+v, want a grant", name, denied.RetryAfter, got)
			}
		}
	})
}

func TestADenialTellsWhatRemains(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *neaptest.Redis, l *redis_rate.Limiter) {
		rate := redis_rate.PerHour(10)
		must(l.AllowN(t.Context(), "k", rate, 6))(t)
		for _, n := range []int{5, 1000} {
			if got := must(l.AllowN(t.Context(), "k", rate, n))(t); got.Allowed != 0 || got.Remaining != 4 {
				t.Errorf("%d of the 4 that are left: got %+v, want a denial, and 4 remaining", n, got)
			}
		}
	})
}

// TestAChangeOfTheLimitKeepsWhatIsTaken in permits.
func TestAChangeOfTheLimitKeepsWhatIsTaken(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, _ *neaptest.Redis, l *redis_rate.Limiter) {
		must(l.AllowN(t.Context(), "k", redis_rate.PerSecond(10), 10))(t)
		if got := remaining(t, l, "k", redis_rate.PerHour(15)); got != 5 {
			t.Errorf("10 taken, and then a limit of 15: got %d remaining, want 5", got)
		}
		if got := remaining(t, l, "k", redis_rate.PerHour(8)); got != 0 {
			t.Errorf("10 taken, and then a limit of 8: got %d remaining, want 0", got)
		}
	})
}

// TestWithoutRedisNothingIsAdmitted: a call is an error, and it does not take longer than its budget.
func TestWithoutRedisNothingIsAdmitted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *neaptest.Redis, l *redis_rate.Limiter) {
		rate := redis_rate.PerHour(10)
		must(l.Allow(t.Context(), "k", rate))(t)
		r.Slow(time.Hour)
		for i := range 30 {
			began := time.Now()
			got, err := l.AllowAtMost(t.Context(), "k", rate, 3)
			var typed *script.Error
			if got != nil || !errors.As(err, &typed) {
				t.Fatalf("a Redis that does not answer: got %+v, %v, want a *script.Error alone", got, err)
			}
			if took := time.Since(began); took > time.Second || i == 29 && took > time.Millisecond {
				t.Errorf("call %d of a Redis that does not answer took %v, want a second at most, and nothing in the end", i, took)
			}
		}
		r.Restore()
		time.Sleep(10 * time.Second)
		// What was sent before may have taken permits of "k".
		if got := must(l.Allow(t.Context(), "other", rate))(t); got.Allowed != 1 {
			t.Errorf("when Redis answers again: got %+v, want a permit", got)
		}
	})
}

// TestALostReplyIsAnError although the script has run.
func TestALostReplyIsAnError(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *neaptest.Redis, l *redis_rate.Limiter) {
		rate := redis_rate.PerHour(10)
		must(l.Allow(t.Context(), "k", rate))(t)
		r.LoseReply("limit_kept.lua")
		if got, err := l.Allow(t.Context(), "k", rate); got != nil || !errors.Is(err, script.ErrMaybeExecuted) {
			t.Errorf("a call whose reply is lost: got %+v, %v, want script.ErrMaybeExecuted", got, err)
		}
		r.Restore()
		time.Sleep(10 * time.Second)
		if got := remaining(t, l, "k", rate); got != 8 {
			t.Errorf("after one reply that was lost: got %d remaining, want 8: the script ran once", got)
		}
	})
}

func TestNewTakesTheFailureModeOfALimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := neaptest.New(t)
		local := must(redis_rate.New(r.Client(), nil))(t)
		open := must(redis_rate.New(r.Client(), &limit.Options{Fail: store.FailOpen}))(t)
		rate := redis_rate.PerHour(2)
		r.Lose()
		for i, want := range []int{1, 1, 0} {
			if got := must(local.Allow(t.Context(), "k", rate))(t); got.Allowed != want {
				t.Errorf("FailLocal without Redis, call %d: got %+v, want %d granted", i, got, want)
			}
			if got := must(open.AllowAtMost(t.Context(), "k", rate, 9))(t); got.Allowed != 2 {
				t.Errorf("FailOpen without Redis: got %+v, want the whole Burst", got)
			}
		}
	})
}

// TestRoundTrips counts the scripts that a server runs for AllowAtMost.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	s := redistest.NewStandalone(t)
	l := must(redis_rate.New(s.Client(t), &limit.Options{Budget: 5 * time.Second, Fail: store.FailClosed}))(t)
	rate := redis_rate.PerHour(10)
	must(l.AllowN(t.Context(), "k", rate, 0))(t) // tells the server the script
	admin := s.Admin(t)
	for _, c := range []struct {
		what  string
		n     int
		grant int
		trips int64
	}{
		{"all", 7, 7, 1}, {"none but a look", 0, 0, 1}, {"some", 7, 3, 2}, {"none", 7, 0, 1}, {"none of many", 1000, 0, 1},
	} {
		redistest.ResetStats(t, admin)
		got := must(l.AllowAtMost(t.Context(), "k", rate, c.n))(t)
		if trips := redistest.CommandStats(t, admin)["evalsha"].Calls; got.Allowed != c.grant || trips != c.trips {
			t.Errorf("%s: got %d granted in %d round trips, want %d in %d", c.what, got.Allowed, trips, c.grant, c.trips)
		}
	}
}

// competitor takes permits after each reply to a script, before its caller sees the reply.
type competitor struct {
	rival *redis_rate.Limiter
	key   string
	rate  redis_rate.Limit
	calls int
}

func (c *competitor) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *competitor) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *competitor) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() != "evalsha" || err != nil {
			return err
		}
		c.calls++
		if _, err := c.rival.AllowN(ctx, c.key, c.rate, 1); err != nil {
			return err
		}
		return nil
	}
}

// TestAllowAtMostAsksEightTimes while another caller takes a permit after each reply, and no more often.
func TestAllowAtMostAsksEightTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		burst, grant, calls int
	}{
		{20, 0, 8}, // the eighth reply reports 12
		{9, 0, 8},  // the eighth reply reports 1
		{5, 0, 5},  // the fifth reply reports none
	} {
		s := redistest.NewStandalone(t)
		opts := &limit.Options{Budget: 5 * time.Second, Fail: store.FailClosed}
		rdb := s.Client(t)
		rival, l := must(redis_rate.New(s.Client(t), opts))(t), must(redis_rate.New(rdb, opts))(t)
		rate := redis_rate.PerHour(c.burst)
		must(l.AllowN(t.Context(), "k", rate, 0))(t) // tells the server the script
		by := &competitor{rival: rival, key: "k", rate: rate}
		rdb.AddHook(by)
		must(rival.AllowN(t.Context(), "k", rate, 1))(t)
		got := must(l.AllowAtMost(t.Context(), "k", rate, c.burst))(t)
		if got.Allowed != c.grant || by.calls != c.calls {
			t.Errorf("of %d: got %d granted by %d calls, want %d by %d", c.burst, got.Allowed, by.calls, c.grant, c.calls)
		}
	}
}

// TestKeys are as the package says, and expire.
func TestKeys(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		l := must(redis_rate.New(storetest.At(t, rdb, prefix), &limit.Options{Budget: 5 * time.Second, Fail: store.FailClosed}))(t)
		rate := redis_rate.PerHour(10)
		must(l.AllowN(t.Context(), "project:123", rate, 10))(t)
		key := prefix + ":limit:redis_rate:{project:123}:rate!kept-bucket"
		ttl := must(admin.PTTL(t.Context(), key).Result())(t)
		if ttl < 50*time.Minute || ttl > time.Hour+time.Second {
			t.Errorf("got a time to live of %v for %s, want an hour", ttl, key)
		}
		if err := l.Reset(t.Context(), "project:123"); err != nil {
			t.Fatal(err)
		}
		if n := must(admin.Exists(t.Context(), key).Result())(t); n != 0 {
			t.Errorf("got the key %s after Reset, want none", key)
		}
	})
}

func TestWhatCannotBeCountedIsAnError(t *testing.T) {
	t.Parallel()
	l := redis_rate.NewLimiter(redistest.Embedded())
	for text, c := range map[string]struct {
		rate redis_rate.Limit
		n    int
	}{
		"n is -1":                              {redis_rate.PerSecond(1), -1},
		"Limit.Rate is 0":                      {redis_rate.Limit{}, 1},
		"Limit.Rate is -3":                     {redis_rate.PerSecond(-3), 1},
		"Limit.Period is 1ns":                  {redis_rate.Limit{Rate: 1, Burst: 1, Period: 1}, 1},
		"625501 req/h (burst 625501): ":        {redis_rate.PerHour(625_501), 1},
		"burst 9223372036854775807): ":         {redis_rate.PerHour(math.MaxInt), math.MaxInt},
		"are together beyond exact arithmetic": {redis_rate.PerSecond(3_000_000_000), 1},
	} {
		for name, call := range map[string]func(context.Context, string, redis_rate.Limit, int) (*redis_rate.Result, error){
			"AllowN": l.AllowN, "AllowAtMost": l.AllowAtMost,
		} {
			if got, err := call(t.Context(), "k", c.rate, c.n); got != nil || err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s of %v, n %d: got %+v, %v, want an error with %q", name, c.rate, c.n, got, err, text)
			}
		}
	}
	for _, rate := range []redis_rate.Limit{redis_rate.PerHour(625_000), redis_rate.PerSecond(2_000_000_000), redis_rate.PerMinute(30_000_000)} {
		if got, err := l.AllowN(t.Context(), rate.String(), rate, rate.Burst); err != nil || got.Allowed != rate.Burst {
			t.Errorf("%v: got %+v, %v, want all permits granted", rate, got, err)
		}
	}
	if got, err := l.AllowN(t.Context(), "far", redis_rate.PerHour(1), math.MaxInt); err != nil || got.RetryAfter != math.MaxInt64 {
		t.Errorf("as many permits as an int holds: got %+v, %v, want the longest RetryAfter there is", got, err)
	}
	if got, err := l.AllowN(t.Context(), "k", redis_rate.Limit{Rate: 1, Burst: math.MinInt, Period: time.Hour}, 1); err != nil || got.Allowed != 0 || got.RetryAfter != math.MaxInt64 {
		t.Errorf("the smallest Burst: got %+v, %v, want a denial for ever", got, err)
	}
	if got, err := l.Allow(t.Context(), "", redis_rate.PerHour(1)); got != nil || !errors.Is(err, limit.ErrSubject) {
		t.Errorf("an empty key: got %+v, %v, want limit.ErrSubject", got, err)
	}
}

// TestMisuseIsNamed: an error, where redis_rate dereferences a nil.
func TestMisuseIsNamed(t *testing.T) {
	t.Parallel()
	var none *redis.Client
	for what, l := range map[string]*redis_rate.Limiter{
		"a nil or zero Limiter": nil,
		"a nil or zero":         {},
		"rdb is nil":            redis_rate.NewLimiter(nil),
		"rdb is a nil *redis":   redis_rate.NewLimiter(none),
		"rdb is a pipeline":     redis_rate.NewLimiter(redistest.Embedded().Pipeline()),
		"has no Process method": redis_rate.NewLimiter(struct{ redis.Scripter }{redistest.Embedded()}),
	} {
		_, allow := l.Allow(t.Context(), "k", redis_rate.PerSecond(1))
		_, allowN := l.AllowN(t.Context(), "k", redis_rate.PerSecond(1), 0)
		_, atMost := l.AllowAtMost(t.Context(), "k", redis_rate.PerSecond(1), 1)
		for name, err := range map[string]error{"Allow": allow, "AllowN": allowN, "AllowAtMost": atMost, "Reset": l.Reset(t.Context(), "k")} {
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: got the error %v, want %q in it", name, err, what)
			}
		}
	}
	if l, err := redis_rate.New(redistest.Embedded(), &limit.Options{Budget: -1}); l != nil || err == nil || !strings.Contains(err.Error(), "Budget") {
		t.Errorf("a Budget below 0: got %v, %v, want an error that names it", l, err)
	}
}
