package limit

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefundAfterALongRest: the server's clock was last read so long ago that by this
// reading a short window cannot be told from the next one.
func TestRefundAfterALongRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := inBubble(t, bubble(t), "rest",
			FixedWindow{Name: "minute", Limit: 9, Window: time.Minute}, SlidingLog{Name: "day", Limit: 9, Window: 24 * time.Hour})
		for range 2 {
			d := must(l.Take(t.Context(), "s"))(t)
			time.Sleep(time.Second)
			if err := d.Refund(t.Context()); err != nil {
				t.Errorf("the refund of a decision: got %v, want no error", err)
			}
			wantRemaining(t, l, 9, "after the refund")
			time.Sleep(100 * 24 * time.Hour)
		}
	})
}

// TestRefundWhenTheServersClockWasSet, or when another server has replaced it: the old
// reading of the clock makes a refund give back neither more nor less.
func TestRefundWhenTheServersClockWasSet(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			m := bubble(t)
			l := inBubble(t, m, "set", TokenBucket{Rate: 1, Per: 2 * time.Second, Burst: 9})
			seen := take(t, l, "seen", 1)
			if err := seen.Refund(t.Context()); err != nil {
				t.Fatal(err)
			}
			m.SetTime(time.Now().Add(by))
			older, _ := take(t, l, "s", 4), take(t, l, "s", 2)
			time.Sleep(6 * time.Second) // three of the older four drain
			m.SetTime(time.Now().Add(by))
			if err := older.Refund(t.Context()); err != nil {
				t.Errorf("a refund after the clock was set by %v: got %v, want no error", by, err)
			}
			if d := take(t, l, "s", 0); d.Remaining != 7 {
				t.Errorf("after the clock was set by %v: got %d permits remaining, want 7", by, d.Remaining)
			}
		})
	}
}

func TestBetween(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &serverClock{at: 1e9, sent: now, got: now.Add(3 * time.Microsecond)}
	for _, c := range []struct {
		from, to time.Duration
		want     moment
	}{
		{0, 3 * time.Microsecond, moment{1e9 - 4, 1e9 + 4}}, // rounded outwards, by a thousandth of 3 µs
		{-time.Second, -time.Second, moment{1e9 - 1_001_004, 1e9 - 999_000}},
		{time.Second, time.Second, moment{1e9 + 998_997, 1e9 + 1_001_000}},
	} {
		got := s.between(now.Add(c.from), now.Add(c.to))
		if got != c.want {
			t.Errorf("the server's clock between %v and %v: got %+v, want %+v", c.from, c.to, got, c.want)
		}
	}
}

// TestALateRefundSendsNothing: the process knows by itself that nothing is left.
func TestALateRefundSendsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := bubble(t)
		l := inBubble(t, m, "late", FixedWindow{Limit: 9, Window: time.Minute})
		d := must(l.Take(t.Context(), "s"))(t)
		time.Sleep(time.Minute)
		sent := m.CommandCount()
		if err := d.Refund(t.Context()); !errors.Is(err, ErrRefund) || m.CommandCount() != sent {
			t.Errorf("a refund after the window: got %v and %d commands sent, want ErrRefund and none",
				err, m.CommandCount()-sent)
		}
	})
}

// TestRefundHealsABucket whose key never expires, or expires too late.
func TestRefundHealsABucket(t *testing.T) {
	t.Parallel()
	m, rdb := newServer(t)
	for _, rate := range []int64{10, 2000} { // on PTTL and on TIME
		for harm, do := range map[string]func(key string){
			"persist":  func(key string) { rdb.Persist(t.Context(), key) },
			"lengthen": func(key string) { rdb.PExpire(t.Context(), key, 24*time.Hour) },
		} {
			l := must(New(rdb, harm, []Policy{TokenBucket{Rate: rate, Per: time.Hour, Burst: 10}}, closed(10*time.Second)))(t)
			must(l.TakeN(t.Context(), "s", 3))(t)
			d := must(l.TakeN(t.Context(), "s", 2))(t)
			key := l.remote.keys(l, "s")[0]
			do(key)
			if err := d.Refund(t.Context()); err != nil {
				t.Errorf("a refund at rate %d after %s: got %v, want no error", rate, harm, err)
			}
			if ttl, most := m.TTL(key), l.rules[0].state(reading{}, 0).Window; ttl <= 0 || ttl > most {
				t.Errorf("a refund at rate %d after %s: the key lives for %v, want above 0 and at most %v",
					rate, harm, ttl, most)
			}
		}
	}
}
