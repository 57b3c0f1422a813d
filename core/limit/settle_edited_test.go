package limit_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestNoMoreIsGivenBackThanIsThere: somebody has set the count of a window to less than a decision
// took. What is given back leaves nothing, and never less than nothing.
func TestNoMoreIsGivenBackThanIsThere(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	for name, p := range map[string]limit.Policy{
		"window":   limit.FixedWindow{Limit: 10, Window: time.Hour},
		"calendar": limit.CalendarWindow{Limit: 10, Every: limit.Month},
		"sliding":  limit.SlidingWindow{Limit: 10, Window: time.Hour},
	} {
		l := must(limit.New(storetest.At(t, srv.Client(t), prefix), name, []limit.Policy{p}, closed(time.Minute)))(t)
		d := must(l.TakeN(t.Context(), "s", 6))(t)
		key := redistest.KeysOf(t, admin, prefix+":limit:"+name)[0]
		must(admin.Do(t.Context(), "set", key, "1", "keepttl").Result())(t)
		if err := d.Refund(t.Context()); err != nil {
			t.Errorf("%s: a refund of 6 where 1 is used: got %v, want no error", name, err)
		}
		if d := must(l.Peek(t.Context(), "s"))(t); d.Remaining != 10 || admin.Exists(t.Context(), key).Val() != 0 {
			t.Errorf("%s: after it: got %+v and the key %q, want all 10 and no key", name, d, admin.Get(t.Context(), key).Val())
		}
	}
}

// losingOne is a client that loses the reply of the next settlement.
type losingOne struct {
	*redis.Client

	next atomic.Bool
}

func (l *losingOne) Process(ctx context.Context, cmd redis.Cmder) error {
	err := l.Client.Process(ctx, cmd)
	if err == nil && runs(cmd, "limit_settle(") && l.next.Swap(false) {
		err = io.EOF
		cmd.SetErr(err)
	}
	return err
}

// TestARepeatedSettlementTellsWhatWasForgiven: the reply of the first call was lost.
func TestARepeatedSettlementTellsWhatWasForgiven(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb := &losingOne{Client: srv.Client(t)}
	l := must(limit.New(storetest.At(t, rdb, srv.Prefix(t)), "lost", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour, MaxDebt: 2}}, closed(time.Minute)))(t)
	must(0, l.Warm(t.Context()))(t) // so that the settlement goes by its SHA
	d := must(l.TakeN(t.Context(), "s", 5))(t)
	rdb.next.Store(true)
	if s, err := d.Settle(t.Context(), 20); err != nil || s.Forgiven != 8 || rdb.next.Load() {
		t.Errorf("settled to 20 where 12 find room: got %d forgiven, %v, want 8, and that a reply was lost", s.Forgiven, err)
	}
}
