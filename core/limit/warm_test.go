package limit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/lua"
)

// TestWarmSparesTheFirstCall counts what the first decisions after Warm send: they send
// no script's text to any node of a cluster.
func TestWarmSparesTheFirstCall(t *testing.T) {
	t.Parallel()
	for name, c := range behindProxies(t, redistest.NewStandalone(t), redistest.NewCluster(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := must(limit.New(storetest.At(t, c.rdb, c.prefix), "warm",
				[]limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, closed(patience)))(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := l.Warm(ctx); err != nil {
				t.Fatal(err)
			}
			evals, shas := c.proxy.Forwarded("eval"), c.proxy.Forwarded("evalsha")
			for _, subject := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
				d, err := l.Take(t.Context(), subject)
				if err != nil || d.Remaining != 4 {
					t.Errorf("the first take by %s: got %+v, %v, want 4 remaining", subject, d, err)
				}
				err = d.Refund(t.Context())
				if _, fault := l.Reset(t.Context(), subject); err != nil || fault != nil {
					t.Errorf("a refund and a reset of %s: got %v and %v, want no errors", subject, err, fault)
				}
			}
			if evals != c.proxy.Forwarded("eval") || c.proxy.Forwarded("evalsha") < shas+9 {
				t.Errorf("the first decisions: got %d scripts and %d EVALSHA sent, want none and at least 9",
					c.proxy.Forwarded("eval")-evals, c.proxy.Forwarded("evalsha")-shas)
			}
		})
	}
}

// TestWarmLoadsWhatCallsAreMergedBy, so that calls are also merged for a user without the
// right to EVAL.
func TestWarmLoadsWhatCallsAreMergedBy(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	rdb := srv.Client(t)
	l := must(limit.New(storetest.Open(t, rdb, store.Options{Prefix: redistest.Prefix(t), Queue: store.Queued}), "warm",
		[]limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, nil))(t)
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	merged, settle := lua.Take(false, false, "window"), lua.Settle("window")
	for name, sha := range map[string]string{
		"limit_window.lua": shaOf("limit_window.lua"), merged.Name: script.New(merged.Name, merged.Text).SHA(),
		settle.Name: script.New(settle.Name, settle.Text).SHA(), "limit_reset.lua": shaOf("limit_reset.lua"),
	} {
		if there, err := srv.Admin(t).ScriptExists(t.Context(), sha).Result(); err != nil || !there[0] {
			t.Errorf("%s: got %v, %v, want it loaded", name, there, err)
		}
	}
}

// TestWarmHasItsOwnTime, whatever the budget of a decision is.
func TestWarmHasItsOwnTime(t *testing.T) {
	t.Parallel()
	_, client := redistest.Miniredis(t)
	rdb := &redistest.HookedClient{Processor: client}
	slow := func(redis.Cmder) { time.Sleep(50 * time.Millisecond) } // which is longer than the budget
	rdb.Before.Store(&slow)
	st := storetest.Open(t, rdb, store.Options{FirstContact: time.Millisecond})
	l := must(limit.New(st, "warm", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, closed(time.Millisecond)))(t)
	if _, err := l.Take(t.Context(), "s"); err == nil {
		t.Error("a take with a budget that is too short: got no error, want one: this test is about it")
	}
	if err := l.Warm(t.Context()); err != nil {
		t.Errorf("Warm at a slow server: got %v, want no error", err)
	}
}

// TestWarmTellsWhatIsWrong, whatever the failure mode is.
func TestWarmTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	policies := []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}
	srv := redistest.NewStandalone(t)
	paused := redistest.NewStandalone(t)
	paused.Pause(t)
	for name, c := range map[string]struct {
		opts redis.Options
		want error
	}{
		"wrong password": {redis.Options{Addr: srv.Addr(), Username: "nobody", Password: "wrong"}, script.ErrConfiguration},
		"no server":      {redis.Options{Addr: refused(t)}, script.ErrNotExecuted},
		"no answer":      {redis.Options{Addr: paused.Addr(), ReadTimeout: 20 * time.Second}, context.DeadlineExceeded},
	} {
		rdb := redis.NewClient(&c.opts)
		defer rdb.Close()
		l := must(limit.New(rdb, "warm", policies, nil))(t)
		patience := time.Minute
		if name == "no answer" {
			patience = 2500 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		began := time.Now()
		if err := l.Warm(ctx); !errors.Is(err, c.want) || name == "no answer" && time.Since(began) > 10*time.Second {
			t.Errorf("Warm with %s: got %v after %v, want %v", name, err, time.Since(began), c.want)
		}
	}
	if err := newTestLocal(t, nil, policies...).Warm(t.Context()); err != nil {
		t.Errorf("Warm of a local limiter: got %v, want no error", err)
	}
}
