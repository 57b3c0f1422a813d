package limit_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
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

// TestWithoutEval uses a Redis user that may run only scripts that an admin has loaded,
// as the documented ACL line says. Every kind of decision and Warm work for that user. On
// a server that has lost the scripts, each call fails at once and says so.
func TestWithoutEval(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	user := redistest.NewUser(t, redistest.LoadedRules(), srv)
	rdb := srv.Client(t, func(o *redis.Options) { o.Username = user })
	for _, lost := range []bool{true, false, true} {
		if lost {
			must(admin.ScriptFlush(t.Context()).Result())(t)
		} else {
			srv.LoadScripts(t)
		}
		for _, policies := range setsOf(limit.OneOfEach) {
			l := must(limit.New(storetest.At(t, rdb, prefix), "loaded", policies, closed(patience)))(t)
			for name, call := range map[string]func() error{
				"Take":  func() error { _, err := l.Take(t.Context(), "s"); return err },
				"Peek":  func() error { _, err := l.Peek(t.Context(), "s"); return err },
				"Reset": func() error { _, err := l.Reset(t.Context(), "s"); return err },
				"Warm":  func() error { return l.Warm(t.Context()) },
			} {
				began := time.Now()
				err := call()
				switch {
				case !lost && err != nil:
					t.Errorf("a take by %s under %d policies with the scripts loaded: got %v, want no error",
						name, len(policies), err)
				case lost && (!errors.Is(err, script.ErrConfiguration) || !strings.Contains(err.Error(), "'eval'")):
					t.Errorf("a take by %s under %d policies without its script: got %v, want ErrConfiguration that names 'eval'",
						name, len(policies), err)
				case lost && time.Since(began) > 8*time.Second:
					t.Errorf("a take by %s without its script: got the error after %v, want it within 8s: the take was tried again",
						name, time.Since(began))
				}
			}
		}
	}
}

// TestWithoutTheScriptOfMergedCalls: the user may not load the script of merged calls. So
// each call is sent by itself, and no more calls are merged.
func TestWithoutTheScriptOfMergedCalls(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	user, admin := redistest.NewUser(t, redistest.LoadedRules(), srv), srv.Admin(t)
	must(admin.ScriptLoad(t.Context(), script.FromFS(lua.FS, "limit_window.lua").Source()).Result())(t)
	rdb := srv.Client(t, func(o *redis.Options) {
		o.Username, o.DisableIdentity = user, true // the refusals of CLIENT SETINFO would be counted too
	})
	st := storetest.Open(t, rdb, store.Options{Prefix: srv.Prefix(t), Queue: store.Queued})
	l := must(limit.New(st, "n", []limit.Policy{limit.FixedWindow{Limit: 1000, Window: time.Hour}}, closed(patience)))(t)
	const callers = 64
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { // first a batch has several merged calls, since each has 16 keys at most
			if _, err := l.Take(t.Context(), fmt.Sprint("s", i)); err != nil {
				t.Errorf("a take in one of several merged calls: got %v, want a decision", err)
			}
			for range 50 {
				if _, err := l.Take(t.Context(), "s"); err != nil {
					t.Errorf("a take whose merged call the ACL refuses: got %v, want a decision", err)
					return
				}
			}
		})
	}
	all.Wait()
	if d := must(l.Peek(t.Context(), "s"))(t); d.Remaining != 0 {
		t.Errorf("after 3,200 permits were asked for: got %d left, want 0", d.Remaining)
	}
	// Merged calls that were under way beside the first one are refused too. Each of them
	// has at least two callers.
	var refused int
	_, count, _ := strings.Cut(must(admin.Info(t.Context(), "errorstats").Result())(t), "errorstat_NOPERM:count=")
	if _, err := fmt.Sscan(count, &refused); err != nil || refused == 0 || refused > callers/2 {
		t.Errorf("calls that the ACL refuses: got %d (%v), want 1 to %d: the first refusal says that nothing can be merged", refused, err, callers/2)
	}
}

// TestARefundThatTheACLCutsShort takes a right from the user between a decision and its
// refund, and gives it back later. Without SET there is no marker, so nothing is given
// back until then. Without INCRBY the marker says that the refund has run, though the
// window gave nothing back. Neither policy gives back twice.
func TestARefundThatTheACLCutsShort(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	user := redistest.NewUser(t, redistest.Rules, srv)
	rdb := srv.Client(t, func(o *redis.Options) { o.Username = user })
	policies := []limit.Policy{
		limit.TokenBucket{Name: "bucket", Rate: 1, Per: time.Hour, Burst: 10},
		limit.FixedWindow{Name: "window", Limit: 10, Window: time.Hour},
	}
	for right, want := range map[string]map[string]int64{
		"set":    {"bucket": 8, "window": 8},
		"incrby": {"bucket": 8, "window": 7},
	} {
		st := storetest.At(t, rdb, srv.Prefix(t))
		l := must(limit.New(st, right, policies, closed(patience)))(t)
		first := must(l.Take(t.Context(), "s"))(t)
		for range 2 {
			must(l.Take(t.Context(), "s"))(t)
		}
		must(srv.Admin(t).ACLSetUser(t.Context(), user, "-"+right).Result())(t)
		if err := first.Refund(t.Context()); !errors.Is(err, script.ErrConfiguration) {
			t.Errorf("a refund without %s: got %v, want ErrConfiguration", right, err)
		}
		must(srv.Admin(t).ACLSetUser(t.Context(), user, "+"+right).Result())(t)
		if err := first.Refund(t.Context()); err != nil && !errors.Is(err, limit.ErrRefund) { // which it is if it was repeated in the background
			t.Errorf("the refund again: got %v, want no error, or ErrRefund", err)
		}
		must(0, st.Drain(t.Context()))(t)
		d := must(l.Peek(t.Context(), "s"))(t)
		for s := range d.States() {
			if s.Remaining != want[s.Policy] {
				t.Errorf("%s, without %s for a while: got %d permits left, want %d", s.Policy, right, s.Remaining, want[s.Policy])
			}
		}
	}
}
