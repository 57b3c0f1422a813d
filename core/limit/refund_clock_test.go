package limit

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
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
				if err := l.Refund(t.Context(), refunded); err != nil {
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
