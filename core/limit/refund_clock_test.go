package limit_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestRefundWhileTheClockMoves has a server whose clock moves within a script, as before Redis 7.2. It moves by some
// milliseconds before the script asks how long a window lasts. A refund and a settlement still give back whatever is due.
func TestRefundWhileTheClockMoves(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]limit.Policy{
		"window":   limit.FixedWindow{Limit: 10, Window: time.Minute},
		"calendar": limit.CalendarWindow{Limit: 10, Every: limit.Month},
		"sliding":  limit.SlidingWindow{Limit: 10, Window: time.Minute},
		"lease":    limit.WithLease(limit.FixedWindow{Limit: 10, Window: time.Hour}, time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := redistest.Bubble(t)
				l := inBubble(t, m, "moving", policy)
				settled, refunded := must(l.TakeN(t.Context(), "s", 4))(t), must(l.TakeN(t.Context(), "r", 4))(t)
				asked := 0
				m.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
					if strings.EqualFold(command, "pttl") {
						asked++
						time.Sleep(5 * time.Millisecond)
					}
					return false
				})
				s, err := settled.Settle(t.Context(), 1)
				if err != nil || s.After.Remaining != 9 {
					t.Errorf("settled: got %d left, %v, want 9 and no error", s.After.Remaining, err)
				}
				if err := refunded.Refund(t.Context()); err != nil {
					t.Errorf("refunded: got %v, want no error", err)
				}
				if got := must(l.Peek(t.Context(), "r"))(t).Remaining; got != 10 {
					t.Errorf("refunded: got %d left, want 10", got)
				}
				if asked == 0 {
					t.Error("no script asked how long a key lives, want the clock to move then")
				}
			})
		})
	}
}

// TestRefundGivesNothingToTheNextWindow has a server whose clock moves within the script of a refund by about a window.
func TestRefundGivesNothingToTheNextWindow(t *testing.T) {
	t.Parallel()
	const window = 20 * time.Millisecond
	for step := range 40 {
		gap := []time.Duration{time.Microsecond, 900 * time.Microsecond}[step%2]
		stall := window - 6*time.Millisecond + time.Duration(step/2)*time.Millisecond/2
		synctest.Test(t, func(t *testing.T) {
			m := redistest.Bubble(t)
			l := inBubble(t, m, "next", limit.FixedWindow{Limit: 10, Window: window})
			first := must(l.Take(t.Context(), "first"))(t)
			if err := first.Refund(t.Context()); err != nil { // it knows the clock from now on
				t.Fatalf("a first refund: got %v, want no error", err)
			}
			before := must(l.TakeN(t.Context(), "s", 4))(t)
			var held, moves atomic.Int64
			held.Store(int64(window + 2*gap))
			m.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
				switch strings.ToLower(command) {
				case "evalsha": // only the refund
					time.Sleep(time.Duration(held.Swap(0)))
				case "pttl":
					time.Sleep(time.Duration(moves.Swap(0)))
				}
				return false
			})
			given := make(chan error, 1)
			go func() { given <- before.Refund(t.Context()) }()
			time.Sleep(window + gap)
			if d := must(l.TakeN(t.Context(), "s", 10))(t); !d.Allowed {
				t.Fatalf("in the next window: got %+v, want all of it", d)
			}
			moves.Store(int64(stall))
			if err := <-given; !errors.Is(err, limit.ErrRefund) {
				t.Errorf("after %v: got %v, want ErrRefund, since nothing is left of it", stall, err)
			}
		})
	}
}

// TestConclusionsWhileTheClockGoesBack has a server whose clock goes back before each call,
// so that no call finds the clock that it knows. Nothing is given back meanwhile, and the
// caller learns that. It is when the clock stands still.
func TestConclusionsWhileTheClockGoesBack(t *testing.T) {
	t.Parallel()
	for name, conclude := range map[string]func(l *limit.Limiter, d limit.Decision) error{
		"refund": func(l *limit.Limiter, d limit.Decision) error { return d.Refund(t.Context()) },
		"settle": func(_ *limit.Limiter, d limit.Decision) error { _, err := d.Settle(t.Context(), 0); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := redistest.Bubble(t)
				rdb := redistest.BubbleClient(t, m)
				l := must(limit.New(rdb, "back", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed}))(t)
				d := must(l.TakeN(t.Context(), "s", 4))(t)
				var back atomic.Int64
				m.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
					if strings.EqualFold(command, "evalsha") || strings.EqualFold(command, "eval") {
						m.SetTime(time.Now().Add(-time.Duration(back.Add(1)) * time.Second))
					}
					return false
				})
				if err := conclude(l, d); !errors.Is(err, script.ErrNotExecuted) {
					t.Errorf("while the clock goes back: got %v, want ErrNotExecuted", err)
				}
				m.Server().SetPreHook(nil)
				m.SetTime(time.Time{})
				drain(t, rdb)
				if got := must(l.Peek(t.Context(), "s"))(t).Remaining; got != 10 {
					t.Errorf("when the clock stands still: got %d left, want 10", got)
				}
			})
		})
	}
}

// TestConclusionsAfterAFailoverToAnotherClock: what is charged is what was used. The end of a
// window comes from the server that was there before, so by the clock of the present one it
// is off.
func TestConclusionsAfterAFailoverToAnotherClock(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	window, month := limit.FixedWindow{Limit: 1000, Window: 24 * time.Hour}, limit.CalendarWindow{Limit: 1000, Every: limit.Month}
	for name, policy := range map[string]limit.Policy{
		"window": window, "calendar": month, "sliding": limit.SlidingWindow{Limit: 1000, Window: 24 * time.Hour},
		"window with a lease": limit.WithLease(window, time.Hour), "calendar with a lease": limit.WithLease(month, time.Hour),
	} {
		offs := []time.Duration{20 * time.Millisecond, -20 * time.Millisecond, 9 * time.Second, -9 * time.Second}
		if strings.HasSuffix(name, "lease") { // its estimate tells the window
			offs = append(offs, time.Hour, -time.Hour)
		}
		for _, off := range offs {
			t.Run(name+" "+off.String(), func(t *testing.T) {
				t.Parallel()
				prefix := srv.Prefix(t)
				l := must(limit.New(storetest.At(t, srv.Client(t), prefix), "l", []limit.Policy{policy}, closed(patience)))(t)
				less, more, none := must(l.TakeN(t.Context(), "s", 100))(t), must(l.TakeN(t.Context(), "s", 100))(t), must(l.TakeN(t.Context(), "s", 100))(t)
				admin := srv.Admin(t)
				for _, key := range redistest.KeysOf(t, admin, prefix) {
					at := must(admin.PExpireTime(t.Context(), key).Result())(t)
					if strings.HasPrefix(name, "calendar") && time.Until(time.UnixMilli(at.Milliseconds())) < 2*time.Hour {
						t.Skip("the month is about to end")
					}
					if err := admin.PExpireAt(t.Context(), key, time.UnixMilli((at + off).Milliseconds())).Err(); err != nil {
						t.Fatal(err)
					}
				}
				_, err1 := less.Settle(t.Context(), 20)
				_, err2 := more.Settle(t.Context(), 150)
				if err := errors.Join(err1, err2, none.Refund(t.Context())); err != nil {
					t.Error(err)
				}
				if got := must(l.Peek(t.Context(), "s"))(t).Remaining; got != 1000-20-150 {
					t.Errorf("got %d permits left of 1000, want all but the 170 that were used", got)
				}
			})
		}
	}
}

// TestConclusionsAfterAResetGiveBackNothingOfOthers: the window after a Reset ends at another
// time than that of the decisions before it.
func TestConclusionsAfterAResetGiveBackNothingOfOthers(t *testing.T) {
	t.Parallel()
	window := limit.FixedWindow{Limit: 1000, Window: 24 * time.Hour}
	for name, c := range map[string]struct {
		policy limit.Policy
		used   int64
	}{
		"window":              {window, 500},
		"sliding":             {limit.SlidingWindow{Limit: 1000, Window: 24 * time.Hour}, 500},
		"window with a lease": {limit.WithLease(window, time.Hour), 520}, // what was used is charged, as after a lease
	} {
		synctest.Test(t, func(t *testing.T) {
			for where, l := range map[string]*limit.Limiter{
				"in Redis":   inBubble(t, redistest.Bubble(t), "reset", c.policy),
				"in process": must(limit.NewLocal("reset", []limit.Policy{c.policy}, nil))(t),
			} {
				less, none := must(l.TakeN(t.Context(), "s", 100))(t), must(l.TakeN(t.Context(), "s", 100))(t)
				time.Sleep(30 * time.Second)
				must(l.Reset(t.Context(), "s"))(t)
				must(l.TakeN(t.Context(), "s", 500))(t)
				must(less.Settle(t.Context(), 20))(t)
				_ = none.Refund(t.Context())
				used := c.used
				if where == "in process" {
					used = min(used, 500) // its estimates have no lease
				}
				if got := 1000 - must(l.Peek(t.Context(), "s"))(t).Remaining; got != used {
					t.Errorf("%s, %s: got %d used, want %d", name, where, got, used)
				}
			}
		})
	}
}

// TestRefundAfterALongRest: the server's clock was last read so long ago that by this
// reading a short window cannot be told from the next one.
func TestRefundAfterALongRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := inBubble(t, redistest.Bubble(t), "rest",
			limit.FixedWindow{Name: "minute", Limit: 9, Window: time.Minute}, limit.SlidingLog{Name: "day", Limit: 9, Window: 24 * time.Hour})
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
			m := redistest.Bubble(t)
			l := inBubble(t, m, "set", limit.TokenBucket{Rate: 1, Per: 2 * time.Second, Burst: 9})
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

// TestALateRefundSendsNothing: the process knows by itself that nothing is left.
func TestALateRefundSendsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		l := inBubble(t, m, "late", limit.FixedWindow{Limit: 9, Window: time.Minute})
		d := must(l.Take(t.Context(), "s"))(t)
		time.Sleep(time.Minute)
		sent := m.CommandCount()
		if err := d.Refund(t.Context()); !errors.Is(err, limit.ErrRefund) || m.CommandCount() != sent {
			t.Errorf("a refund after the window: got %v and %d commands sent, want ErrRefund and none",
				err, m.CommandCount()-sent)
		}
	})
}

// TestASettlementOfAWindowWithoutATimeToLive counts it as a whole one, as a Peek does.
func TestASettlementOfAWindowWithoutATimeToLive(t *testing.T) {
	t.Parallel()
	for _, used := range []int64{2, 8} {
		m, rdb := redistest.Miniredis(t)
		l := must(limit.New(rdb, "n", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour}}, closed(patience)))(t)
		d := must(l.TakeN(t.Context(), "s", 6))(t)
		rdb.Persist(t.Context(), m.Keys()[0])
		s, err := d.Settle(t.Context(), used)
		if err != nil {
			t.Fatal(err)
		}
		if now := must(l.Peek(t.Context(), "s"))(t); s.After.Remaining != now.Remaining || now.Remaining != 10-used {
			t.Errorf("settled to %d: got %d left, and by a Peek %d, want %d", used, s.After.Remaining, now.Remaining, 10-used)
		}
	}
}

// TestRefundHealsABucket whose key never expires, or expires too late.
func TestRefundHealsABucket(t *testing.T) {
	t.Parallel()
	m, rdb := redistest.Miniredis(t)
	for _, rate := range []int64{10, 2000} { // on PTTL and on TIME
		for harm, do := range map[string]func(key string){
			"persist":  func(key string) { rdb.Persist(t.Context(), key) },
			"lengthen": func(key string) { rdb.PExpire(t.Context(), key, 24*time.Hour) },
		} {
			l := must(limit.New(rdb, harm, []limit.Policy{limit.TokenBucket{Rate: rate, Per: time.Hour, Burst: 10}}, closed(patience)))(t)
			must(l.TakeN(t.Context(), "s", 3))(t)
			d := must(l.TakeN(t.Context(), "s", 2))(t)
			key := redistest.KeysOf(t, rdb, "neap:limit:"+harm+":{s}:bucket-"+fmt.Sprint(rate))[0]
			do(key)
			if err := d.Refund(t.Context()); err != nil {
				t.Errorf("a refund at rate %d after %s: got %v, want no error", rate, harm, err)
			}
			if ttl, most := m.TTL(key), first(d).Window; ttl <= 0 || ttl > most {
				t.Errorf("a refund at rate %d after %s: the key lives for %v, want above 0 and at most %v",
					rate, harm, ttl, most)
			}
		}
	}
}
