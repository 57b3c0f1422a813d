package callback_test

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// These are the schedules that the providers publish, as pauses after the first delivery.
var schedules = map[string][]time.Duration{
	"Alipay": {
		4 * time.Minute, 10 * time.Minute, 10 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 15 * time.Hour,
	},
	"WeChatPay": {
		15 * time.Second, 15 * time.Second, 30 * time.Second, 3 * time.Minute, 10 * time.Minute, 20 * time.Minute,
		30 * time.Minute, 30 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 3 * time.Hour, 3 * time.Hour, 6 * time.Hour, 6 * time.Hour,
	},
}

// The test sends each delivery of a whole schedule twice at once, loses half of the
// answers, and closes the books now and then. The event runs until it is booked, and not
// again. It is acknowledged only after that.
func TestSchedules(t *testing.T) {
	t.Parallel()
	for name, pauses := range schedules {
		for stream := range uint64(20) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(redistest.Seed(t), stream))
				synctest.Test(t, func(t *testing.T) { playSchedule(t, providers()[name], pauses, rng) })
			})
		}
	}
}

func playSchedule(t *testing.T, p provider, pauses []time.Duration, rng *rand.Rand) {
	t.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	rdb := redis.NewClient(redistest.InBubble(&redis.Options{
		Addr:                  "127.0.0.1:1", // no connection is made to it
		Dialer:                func(context.Context, string, string) (net.Conn, error) { return redistest.DialBubble(m) },
		ContextTimeoutEnabled: true,
	}))
	defer func() {
		_ = rdb.Close()
		m.Close()
	}()
	guard, err := idempotency.New(rdb, "callbacks", idempotency.Retry{}, &idempotency.Options{Retention: p.preset.Retention, DoubtRetention: 2 * p.preset.Retention})
	if err != nil {
		t.Fatal(err)
	}
	closed := rng.IntN(len(pauses)) // the number of deliveries that find the books closed
	s := &shop{handle: func(context.Context, *callback.Event) error {
		if closed > 0 {
			closed--
			return errBook
		}
		return nil
	}}
	h := endpoint(t, p.preset, guard, s, callback.Options{})
	acknowledged := false
	for at := 0; !acknowledged && at <= len(pauses); at++ {
		if at > 0 {
			time.Sleep(pauses[at-1])
		}
		var wg sync.WaitGroup
		var answers [2]response
		for i := range answers {
			wg.Go(func() { answers[i] = deliver(h, p.body, p.header...) })
		}
		wg.Wait()
		_, bookings := s.counts()
		for _, got := range answers {
			switch {
			case got == p.done && bookings == 0:
				t.Fatal("got it acknowledged and not booked, want it booked first")
			case got == p.done:
				acknowledged = acknowledged || rng.IntN(2) == 0 // otherwise the answer is lost
			case got != p.later:
				t.Fatalf("got %+v, want %+v or %+v", got, p.done, p.later)
			}
		}
	}
	if _, bookings := s.counts(); bookings != 1 {
		t.Errorf("it was booked %d times, want once", bookings)
	}
}
