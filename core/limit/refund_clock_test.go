package limit

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestRefundWhileTheClockMoves has a server whose clock moves within a script, as before Redis 7.2. It moves by some
// milliseconds before the script asks how long a window lasts. A refund and a settlement still give back whatever is due.
func TestRefundWhileTheClockMoves(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]Policy{
		"window":   FixedWindow{Limit: 10, Window: time.Minute},
		"calendar": CalendarWindow{Limit: 10, Every: Month},
		"sliding":  SlidingWindow{Limit: 10, Window: time.Minute},
		"lease":    WithLease(FixedWindow{Limit: 10, Window: time.Hour}, time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := bubble(t)
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
			m := bubble(t)
			l := inBubble(t, m, "next", FixedWindow{Limit: 10, Window: window})
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
			if err := <-given; !errors.Is(err, ErrRefund) {
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
	for name, conclude := range map[string]func(l *Limiter, d Decision) error{
		"refund": func(l *Limiter, d Decision) error { return d.Refund(t.Context()) },
		"settle": func(_ *Limiter, d Decision) error { _, err := d.Settle(t.Context(), 0); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := bubble(t)
				l := inBubble(t, m, "back", FixedWindow{Limit: 10, Window: time.Hour})
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
				if err := l.remote.Store.Drain(t.Context()); err != nil {
					t.Errorf("Drain: got %v, want no error", err)
				}
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
	window, month := FixedWindow{Limit: 1000, Window: 24 * time.Hour}, CalendarWindow{Limit: 1000, Every: Month}
	for name, policy := range map[string]Policy{
		"window": window, "calendar": month, "sliding": SlidingWindow{Limit: 1000, Window: 24 * time.Hour},
		"window with a lease": WithLease(window, time.Hour), "calendar with a lease": WithLease(month, time.Hour),
	} {
		offs := []time.Duration{20 * time.Millisecond, -20 * time.Millisecond, 9 * time.Second, -9 * time.Second}
		if strings.HasSuffix(name, "lease") { // its estimate tells the window
			offs = append(offs, time.Hour, -time.Hour)
		}
		for _, off := range offs {
			t.Run(name+" "+off.String(), func(t *testing.T) {
				t.Parallel()
				prefix := srv.Prefix(t)
				l := must(New(storetest.At(t, srv.Client(t), prefix), "l", []Policy{policy}, closed(5*time.Second)))(t)
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
	window := FixedWindow{Limit: 1000, Window: 24 * time.Hour}
	for name, c := range map[string]struct {
		policy Policy
		used   int64
	}{
		"window":              {window, 500},
		"sliding":             {SlidingWindow{Limit: 1000, Window: 24 * time.Hour}, 500},
		"window with a lease": {WithLease(window, time.Hour), 520}, // what was used is charged, as after a lease
	} {
		synctest.Test(t, func(t *testing.T) {
			for where, l := range map[string]*Limiter{
				"in Redis":   inBubble(t, bubble(t), "reset", c.policy),
				"in process": must(NewLocal("reset", []Policy{c.policy}, nil))(t),
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
