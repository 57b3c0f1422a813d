package limit_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
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
