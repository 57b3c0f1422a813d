package store_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// defaultFirstContact is what the documentation of Options tells.
const defaultFirstContact = time.Second

// late answers each call after a while, if the caller's time is that long.
type late struct{ by atomic.Int64 }

func (l *late) Process(ctx context.Context, cmd redis.Cmder) error {
	redistest.Write(cmd)
	select {
	case <-time.After(time.Duration(l.by.Load())):
		cmd.(interface{ SetVal(val any) }).SetVal(int64(1))
		return nil
	case <-ctx.Done():
		cmd.SetErr(ctx.Err())
		return ctx.Err()
	}
}

// TestFirstCallsMayConnect: Redis takes most of a second for its first answer. It still
// decides the calls that began together, and later calls have only their budget.
func TestFirstCallsMayConnect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb late
		rdb.by.Store(int64(900 * time.Millisecond))
		l := aLimit(t, &rdb)
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				if spent, byRedis := took(t, l); !byRedis {
					t.Errorf("a first call: got a decision without Redis after %v, want one by Redis", spent)
				}
			})
		}
		wg.Wait()
		if spent, byRedis := took(t, l); byRedis || spent != limit.DefaultBudget {
			t.Errorf("a call after the first answer: got it after %v, decided by Redis %v; want it after its budget, and without Redis", spent, byRedis)
		}
	})
}

// TestADeadRedisCostsFirstContactOnce: all callers wait until a second after the first of
// them began, and no later caller waits as long.
func TestADeadRedisCostsFirstContactOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rdb late
		rdb.by.Store(int64(time.Hour))
		l := aLimit(t, &rdb)
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				after := time.Duration(i) * 80 * time.Millisecond
				time.Sleep(after)
				if spent, byRedis := took(t, l); byRedis || spent != defaultFirstContact-after {
					t.Errorf("a call %v after the first: got it after %v, want it to end a second after the first began", after, spent)
				}
			})
		}
		wg.Wait()
		for range 3 {
			if spent, _ := took(t, l); spent != limit.DefaultBudget {
				t.Errorf("a call after the first contact failed: got it after %v, want its budget", spent)
			}
		}
	})
}

// TestFirstContactKeepsToTheCaller: a caller with less time waits less.
func TestFirstContactKeepsToTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // what asks in the background
		var rdb late
		rdb.by.Store(int64(time.Hour))
		l := aLimit(t, &rdb)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := l.Take(ctx, "s")
		if spent := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || spent != 300*time.Millisecond {
			t.Errorf("a caller with 300 ms: got %v after %v, want DeadlineExceeded then", err, spent)
		}
	})
}

// TestFirstContactIsAnOption of the store.
func TestFirstContactIsAnOption(t *testing.T) {
	t.Parallel()
	for option, want := range map[time.Duration]time.Duration{
		0: defaultFirstContact, 3 * time.Second: 3 * time.Second, time.Nanosecond: limit.DefaultBudget,
	} {
		synctest.Test(t, func(t *testing.T) {
			var rdb late
			rdb.by.Store(int64(time.Hour))
			l := aLimit(t, storetest.Open(t, &rdb, store.Options{FirstContact: option}))
			if spent, _ := took(t, l); spent != want {
				t.Errorf("the first call with a FirstContact of %v: got it after %v, want %v", option, spent, want)
			}
		})
	}
}

// TestFirstContactConnectsToAllMasters after one call to one node of a cluster of three.
func TestFirstContactConnectsToAllMasters(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t)
	var dialled sync.Map
	rdb := cluster.Client(t, func(o *redis.ClusterOptions) {
		o.Addrs = o.Addrs[:1] // it learns of the others
		o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Store(address, true)
			return new(net.Dialer).DialContext(ctx, network, address)
		}
	})
	l := aLimit(t, storetest.Open(t, rdb, store.Options{FirstContact: time.Minute}))
	if _, err := l.Take(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	redistest.Await(t, time.Minute, "connections to all masters", func() bool {
		for _, node := range cluster.Nodes() {
			if _, ok := dialled.Load(node.Addr()); !ok {
				return false
			}
		}
		return true
	})
}
