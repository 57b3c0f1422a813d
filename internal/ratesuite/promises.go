package ratesuite

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slack is how much of a time may pass while a test runs, on a busy machine. The permits of the limits
// that are measured with it take an hour and more.
const slack = 10 * time.Minute

// hourly has ten permits. One of them comes back in ten hours.
var hourly = Limit{Rate: 1, Burst: 10, Period: 10 * time.Hour}

// promises are what the documentation of redis_rate says of calls that are answered.
var promises = []struct {
	name  string
	holds func(t *testing.T, s subject, period time.Duration)
}{
	{"allow-takes-one", allowTakesOne},
	{"allowN-takes-all-or-none", allowNTakesAllOrNone},
	{"zero-looks-and-takes-nothing", zeroLooks},
	{"more-than-the-burst-is-denied", beyondTheBurst},
	{"atMost-takes-what-there-is", atMostTakesWhatThereIs},
	{"reset-forgets", resetForgets},
	{"a-burst-of-zero-admits-nothing", zeroBurst},
	{"keys-are-apart-and-limiters-are-not", keysAreApart},
	{"permits-come-back-one-by-one", permitsComeBack},
	{"retry-after-is-long-enough", retryAfterIsLongEnough},
	{"many-callers-get-what-there-is", manyCallers},
	{"many-callers-of-atMost-get-what-there-is", manyCallersOfAtMost},
}

// want is what an answer must be. A time may be shorter by the slack.
func want(t *testing.T, what string, got Result[Limit], limit Limit, allowed, remaining int, retryAfter, resetAfter time.Duration) {
	t.Helper()
	if got.Limit != limit || got.Allowed != allowed || got.Remaining != remaining {
		t.Errorf("%s: got %d allowed and %d remaining of %v, want %d and %d of %v",
			what, got.Allowed, got.Remaining, got.Limit, allowed, remaining, limit)
	}
	if retryAfter < 0 && got.RetryAfter != retryAfter || retryAfter >= 0 && !near(got.RetryAfter, retryAfter) {
		t.Errorf("%s: got a RetryAfter of %v (%d), want %v", what, got.RetryAfter, got.RetryAfter, retryAfter)
	}
	if !near(got.ResetAfter, resetAfter) {
		t.Errorf("%s: got a ResetAfter of %v, want %v", what, got.ResetAfter, resetAfter)
	}
}

// near is with a second more, since redis_rate rounds in floating point.
func near(got, want time.Duration) bool {
	return got >= max(want-slack, 0) && got <= want+time.Second && (want == 0) == (got == 0)
}

func allowTakesOne(t *testing.T, s subject, _ time.Duration) {
	for n := 1; n <= hourly.Burst; n++ {
		want(t, "a permit that is there", s.allow(hourly), hourly, 1, hourly.Burst-n, -1, time.Duration(n)*hourly.Period)
	}
	want(t, "one more", s.allow(hourly), hourly, 0, 0, hourly.Period, 10*hourly.Period)
}

func allowNTakesAllOrNone(t *testing.T, s subject, _ time.Duration) {
	want(t, "7 of 10", s.allowN(hourly, 7), hourly, 7, 3, -1, 7*hourly.Period)
	if got := s.allowN(hourly, 4); got.Allowed != 0 || !near(got.RetryAfter, hourly.Period) || !near(got.ResetAfter, 7*hourly.Period) {
		t.Errorf("4 of the 3 that are left: got %+v, want a denial, and one permit's time to wait", got)
	}
	want(t, "the 3 that are left", s.allowN(hourly, 3), hourly, 3, 0, -1, 10*hourly.Period)
}

func zeroLooks(t *testing.T, s subject, _ time.Duration) {
	want(t, "AllowN(0) of a new key", s.allowN(hourly, 0), hourly, 0, 10, -1, 0)
	want(t, "AllowAtMost(0) of a new key", s.allowAtMost(hourly, 0), hourly, 0, 10, -1, 0)
	s.allowN(hourly, 4)
	for range 3 {
		want(t, "AllowN(0)", s.allowN(hourly, 0), hourly, 0, 6, -1, 4*hourly.Period)
		want(t, "AllowAtMost(0)", s.allowAtMost(hourly, 0), hourly, 0, 6, -1, 4*hourly.Period)
	}
	s.allowN(hourly, 6)
	want(t, "AllowN(0) of an exhausted key", s.allowN(hourly, 0), hourly, 0, 0, -1, 10*hourly.Period)
	want(t, "AllowAtMost(0) of an exhausted key", s.allowAtMost(hourly, 0), hourly, 0, 0, hourly.Period, 10*hourly.Period)
}

func beyondTheBurst(t *testing.T, s subject, _ time.Duration) {
	for range 2 {
		if got := s.allowN(hourly, 1000); got.Allowed != 0 || !near(got.RetryAfter, 990*hourly.Period) || got.ResetAfter != 0 {
			t.Errorf("1000 of 10: got %+v, want a denial, and the time of the 990 that are too many", got)
		}
	}
	want(t, "all 10 after that", s.allowN(hourly, 10), hourly, 10, 0, -1, 10*hourly.Period)
	want(t, "1000 of none", s.allowN(hourly, 1000), hourly, 0, 0, 1000*hourly.Period, 10*hourly.Period)
}

func atMostTakesWhatThereIs(t *testing.T, s subject, _ time.Duration) {
	want(t, "2 of 10", s.allowAtMost(hourly, 2), hourly, 2, 8, -1, 2*hourly.Period)
	want(t, "none", s.allowN(hourly, 0), hourly, 0, 8, -1, 2*hourly.Period)
	want(t, "1000 of 8", s.allowAtMost(hourly, 1000), hourly, 8, 0, -1, 10*hourly.Period)
	want(t, "1000 of none", s.allowAtMost(hourly, 1000), hourly, 0, 0, hourly.Period, 10*hourly.Period)
}

func resetForgets(t *testing.T, s subject, _ time.Duration) {
	s.reset() // of a key that has taken nothing
	s.allowN(hourly, 10)
	s.reset()
	want(t, "a permit after Reset", s.allow(hourly), hourly, 1, 9, -1, hourly.Period)
	daily := Limit{Rate: 3, Burst: 7, Period: 24 * time.Hour}
	s.reset() // has no limit among its arguments, so it holds for each
	want(t, "another limit after Reset", s.allowN(daily, 7), daily, 7, 0, -1, 56*time.Hour)
	s.reset()
	want(t, "another limit after another Reset", s.allowN(daily, 1), daily, 1, 6, -1, 8*time.Hour)
}

func zeroBurst(t *testing.T, s subject, _ time.Duration) {
	none := Limit{Rate: 1, Burst: 0, Period: 10 * time.Hour}
	want(t, "Allow", s.allow(none), none, 0, 0, none.Period, 0)
	want(t, "AllowN(3)", s.allowN(none, 3), none, 0, 0, 3*none.Period, 0)
	want(t, "AllowN(0)", s.allowN(none, 0), none, 0, 0, -1, 0)
	want(t, "AllowAtMost(3)", s.allowAtMost(none, 3), none, 0, 0, none.Period, 0)
}

func keysAreApart(t *testing.T, s subject, _ time.Duration) {
	s.allowN(hourly, 10)
	want(t, "another key", s.another().allow(hourly), hourly, 1, 9, -1, hourly.Period)
	want(t, "the same key of another limiter", s.twin().allow(hourly), hourly, 0, 0, hourly.Period, 10*hourly.Period)
}

// exhaust takes permits until there are none, which a machine that is slow does not do at once.
func exhaust(t *testing.T, s subject, limit Limit) (denied Result[Limit]) {
	t.Helper()
	for range 1_000_000 {
		if denied = s.allow(limit); denied.Allowed == 0 {
			return denied
		}
	}
	t.Fatal("a million permits were granted, want a denial")
	return denied
}

func permitsComeBack(t *testing.T, s subject, period time.Duration) {
	limit := Limit{Rate: 2, Burst: 3, Period: period}
	denied := exhaust(t, s, limit)
	if denied.RetryAfter <= 0 || denied.RetryAfter > period/2+time.Millisecond || denied.ResetAfter > 3*period/2 {
		t.Errorf("got %+v, want the time of one permit at most, and of three", denied)
	}
	time.Sleep(denied.ResetAfter + time.Millisecond)
	asked := time.Now()
	if got := s.allowN(limit, 3); got.Allowed != 3 {
		t.Errorf("all permits after ResetAfter: got %+v, want 3 granted", got)
	}
	began := time.Now()
	granted := 0
	for time.Since(began) < 4*period || granted < 1 && time.Since(began) < 4*period+time.Minute {
		if got := s.allow(limit); got.Allowed == 1 {
			granted++
		} else {
			time.Sleep(got.RetryAfter)
		}
	}
	most := int(time.Since(asked)*2/period) + 1
	if granted > most || granted < 1 {
		t.Errorf("got %d permits in %v, want 1 to %d", granted, time.Since(asked), most)
	}
}

func retryAfterIsLongEnough(t *testing.T, s subject, period time.Duration) {
	limit := Limit{Rate: 1, Burst: 2, Period: period}
	for range 3 {
		denied := exhaust(t, s, limit)
		time.Sleep(denied.RetryAfter + time.Millisecond)
		if got := s.allow(limit); got.Allowed != 1 {
			t.Errorf("after a RetryAfter of %v: got %+v, want a permit", denied.RetryAfter, got)
		}
	}
}

func manyCallers(t *testing.T, s subject, _ time.Duration) {
	limit := Limit{Rate: 1, Burst: 100, Period: 10 * time.Hour}
	var granted, denied atomic.Int64
	var all sync.WaitGroup
	for _, caller := range []subject{s, s.twin()} {
		for range 8 {
			all.Go(func() {
				for range 20 {
					if got := caller.allow(limit); got.Allowed == 1 {
						granted.Add(1)
					} else {
						denied.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	if granted.Load() != 100 || denied.Load() != 220 {
		t.Errorf("got %d granted and %d denied, want 100 and 220", granted.Load(), denied.Load())
	}
}

func manyCallersOfAtMost(t *testing.T, s subject, _ time.Duration) {
	limit := Limit{Rate: 1, Burst: 100, Period: 10 * time.Hour}
	var granted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				got := s.allowAtMost(limit, 7)
				granted.Add(int64(got.Allowed))
				if got.Allowed == 0 && got.Remaining == 0 {
					return
				}
			}
		})
	}
	all.Wait()
	if granted.Load() != 100 {
		t.Errorf("got %d permits, want 100", granted.Load())
	}
}
