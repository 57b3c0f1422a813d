package limit_test

import (
	"fmt"
	"runtime"
	"strings"
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

// TestWhoTakesNoEstimatesBack: neither a peek, to which they are free, nor a user without the right
// to delete them. They stay in the window until they are taken back as a whole.
func TestWhoTakesNoEstimatesBack(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	admin := srv.Admin(t)
	leased := limit.WithLease(limit.FixedWindow{Limit: 10, Window: time.Hour}, 10*time.Millisecond)
	by := func(rdb redis.UniversalClient) *limit.Limiter {
		return must(limit.New(storetest.At(t, rdb, prefix), "lapsed", []limit.Policy{leased}, closed(time.Minute)))(t)
	}
	crashed := &redistest.CutClient{Client: srv.Client(t)}
	must(by(crashed).TakeN(t.Context(), "s", 6))(t)
	crashed.Cut("refused")
	l := by(srv.Client(t))
	redistest.Await(t, time.Minute, "the lease to end", func() bool { return must(l.PeekN(t.Context(), "s", 10))(t).Allowed })
	user := redistest.NewUser(t, "~* +@all -zrem", srv)
	d := must(by(srv.Client(t, func(o *redis.Options) { o.Username = user })).TakeN(t.Context(), "s", 10))(t)
	if used := admin.Get(t.Context(), prefix+":limit:lapsed:{s}:window-10-1h").Val(); d.Allowed || used != "6" {
		t.Errorf("after a peek, and a user without ZREM: got allowed %t and %s used, want a denial and 6", d.Allowed, used)
	}
	if d := must(l.TakeN(t.Context(), "s", 10))(t); !d.Allowed {
		t.Error("a request of a user who may delete them: got a denial, want all 10")
	}
}

// TestRenewalsHoldUpNoDecision: Redis answers none of them for a while, and decides as before.
func TestRenewalsHoldUpNoDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.BubbleClient(t, redistest.Bubble(t))
		stalls := &stalling{sha: shaOf("limit_renew.lua"), open: make(chan struct{})}
		defer close(stalls.open)
		rdb.AddHook(redistest.BeforeHook(stalls.stall))
		l := must(limit.New(storetest.Open(t, rdb, store.Options{Queue: store.Queued}), "n", []limit.Policy{
			limit.WithLease(limit.FixedWindow{Limit: 1000, Window: time.Hour}, 3*time.Second),
		}, &limit.Options{Fail: store.FailClosed}))(t)
		var all []limit.Decision // which are renewed while they are held
		for range 100 {
			all = append(all, take(t, l, "s", 1))
		}
		time.Sleep(2 * time.Second)
		if stalls.stalled.Load() == 0 {
			t.Fatal("after two thirds of the lease: got no renewal sent, want one at least")
		}
		for range 100 {
			all = append(all, take(t, l, "s", 1))
			time.Sleep(time.Millisecond)
		}
		runtime.KeepAlive(all)
	})
}

// stalling holds the calls of one script until it is open.
type stalling struct {
	sha     string
	open    chan struct{}
	stalled atomic.Int64
}

func (s *stalling) stall(cmd redis.Cmder) {
	if strings.Contains(fmt.Sprint(cmd.Args()...), s.sha) {
		s.stalled.Add(1)
		<-s.open
	}
}
