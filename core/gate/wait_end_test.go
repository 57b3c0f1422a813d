package gate_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// pressed is a client that does not send a call with less than a tenth of a second left.
type pressed struct{ *redis.Client }

func (p pressed) Process(ctx context.Context, cmd redis.Cmder) error {
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) < 100*time.Millisecond {
		cmd.SetErr(context.DeadlineExceeded)
		return context.DeadlineExceeded
	}
	return p.Client.Process(ctx, cmd)
}

// TestTheEndOfAWaitIsADenial, also if it comes while Redis is asked. It is the gate's own
// deadline, and neither the client's nor a failure of Redis.
func TestTheEndOfAWaitIsADenial(t *testing.T) {
	t.Parallel()
	for _, fail := range []store.FailMode{store.FailOpen, store.FailLocal, store.FailClosed} {
		synctest.Test(t, func(t *testing.T) {
			m := redistest.Bubble(t)
			l, err := limit.New(pressed{redistest.BubbleClient(t, m)}, "n", []limit.Policy{limit.FixedWindow{Limit: 100, Window: time.Hour}},
				&limit.Options{Fail: fail, Budget: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			const wait = 2 * time.Second
			g := gate.RateLimit(l, everyone, &gate.RateLimitOptions{
				Wait:   wait,
				Cost:   func(gate.Request) (int64, error) { return 50, nil },
				Settle: func(gate.Request, *gate.Reply) int64 { return 50 },
			})
			one, two := g.Enter(&request{}), g.Enter(&request{})
			var waits sync.WaitGroup
			waits.Go(func() {
				reply := g.Enter(&request{}).Reply
				if reply == nil || reply.Status != 429 || fmt.Sprint(lines(reply.Header, "Retry-After")) == "[]" {
					t.Errorf("with Fail %s, a request that has waited in vain: got %+v, want a 429 with Retry-After", fail, reply)
				}
			})
			synctest.Wait()
			time.Sleep(wait - 50*time.Millisecond)
			one.Leave(answered(200)) // wakes the one that waits
			waits.Wait()
			two.Leave(answered(200))
			if s := l.Stats(); s.Degraded != 0 {
				t.Errorf("with Fail %s: got %d degraded decisions, want none", fail, s.Degraded)
			}
			time.Sleep(time.Minute)
		})
	}
}
