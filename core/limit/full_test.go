package limit_test

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestFullMemory fills a server that evicts nothing. A decision that would write gets a
// typed error, is made in process, and changes nothing. A decision that only reads is
// made by Redis.
func TestFullMemory(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
	admin, rdb := srv.Admin(t), srv.Client(t)
	prefix := srv.Prefix(t)
	type pair struct {
		closed, local *limit.Limiter
		denies        bool // a fast bucket drains between two calls
	}
	var pairs []pair
	sets := [][]limit.Policy{limit.OneOfEach, {limit.SlidingLog{Limit: 9000, Window: time.Hour}}}
	for i, policies := range append(sets, each(limit.OneOfEach)...) {
		var p pair
		for fail, into := range map[store.FailMode]**limit.Limiter{store.FailClosed: &p.closed, store.FailLocal: &p.local} {
			opts := &limit.Options{Budget: 10 * time.Second, Fail: fail}
			*into = must(limit.New(storetest.At(t, rdb, prefix), fmt.Sprintf("full%d", i), policies, opts))(t)
		}
		take(t, p.closed, "used", 1)
		take(t, p.closed, "exhausted", must(p.closed.Peek(t.Context(), "exhausted"))(t).Remaining)
		p.denies = policies[0].PolicyName() != "fast"
		pairs = append(pairs, p)
	}
	must(admin.ConfigSet(t.Context(), "maxmemory", "1").Result())(t)
	for i, p := range pairs {
		for _, subject := range []string{"used", "fresh"} {
			before := contents(t, admin, fmt.Sprintf("%s:limit:full%d:{%s}", prefix, i, subject))
			if d, err := p.closed.TakeN(t.Context(), subject, 2); !errors.Is(err, script.ErrNotExecuted) || d.Allowed {
				t.Errorf("set %d, %s under FailClosed: got %+v, %v, want ErrNotExecuted and nothing allowed",
					i, subject, d, err)
			}
			d, err := p.local.TakeN(t.Context(), subject, 2)
			if err != nil || !d.Allowed || !d.Degraded || !errors.Is(d.Cause, script.ErrNotExecuted) {
				t.Errorf("set %d, %s under FailLocal: got %+v, %v, want it allowed, degraded by ErrNotExecuted",
					i, subject, d, err)
			}
			if after := contents(t, admin, fmt.Sprintf("%s:limit:full%d:{%s}", prefix, i, subject)); after != before {
				t.Errorf("set %d, %s: got the keys half applied:\n%s\nwant them as before:\n%s",
					i, subject, after, before)
			}
		}
		if d, err := p.local.Peek(t.Context(), "used"); err != nil || d.Degraded || !d.Allowed {
			t.Errorf("set %d: a peek: got %+v, %v, want it allowed by Redis", i, d, err)
		}
		if p.denies {
			if d, err := p.local.Take(t.Context(), "exhausted"); err != nil || d.Degraded || d.Allowed {
				t.Errorf("set %d: a take when all is taken: got %+v, %v, want a denial by Redis", i, d, err)
			}
		}
		if _, err := p.local.Reset(t.Context(), "used"); err != nil {
			t.Errorf("set %d: a reset: got %v, want no error", i, err)
		}
	}
}

// contents returns the values of a subject's keys, and whether each key has a time to
// live.
func contents(t *testing.T, admin *redis.Client, keys string) string {
	t.Helper()
	var text string
	for _, s := range redistest.Save(t, admin, redistest.KeysOf(t, admin, keys)) {
		text += fmt.Sprintf("%s %x %v\n", s.Key, s.Value, s.TTL > 0)
	}
	return text
}

// TestAFullServerRenewsEstimates, so none lapses whose process lives.
func TestAFullServerRenewsEstimates(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	leased := limit.WithLease(limit.FixedWindow{Limit: 9, Window: time.Hour}, 15*time.Second)
	l := must(limit.New(storetest.At(t, srv.Client(t), prefix), "full", []limit.Policy{leased}, closed(time.Minute)))(t)
	d := take(t, l, "s", 1)
	must(admin.ConfigSet(t.Context(), "maxmemory", "1").Result())(t)
	key := redistest.KeysOf(t, admin, prefix+":limit:full:{s}:window-9-1h!estimates")[0]
	ends := func() (end float64) {
		for _, z := range must(admin.ZRangeWithScores(t.Context(), key, 0, 0).Result())(t) {
			end = z.Score
		}
		return end
	}
	first := ends()
	redistest.Await(t, 2*time.Minute, "a renewal", func() bool { return ends() > first })
	runtime.KeepAlive(d)
}

// TestAnErrorOfAJoinedScriptNamesAFileAndALine, as those of other scripts do.
func TestAnErrorOfAJoinedScriptNamesAFileAndALine(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--maxmemory", "1", "--maxmemory-policy", "noeviction")
	l := must(limit.New(srv.Client(t), "full", []limit.Policy{
		limit.FixedWindow{Limit: 5, Window: time.Hour}, limit.SlidingWindow{Limit: 5, Window: time.Hour},
	}, closed(patience)))(t)
	_, err := l.Take(t.Context(), "s")
	if err == nil || !regexp.MustCompile(`limits/[a-z]+\.lua:\d+`).MatchString(err.Error()) {
		t.Errorf("a take while memory is full: got %v, want an error that names a file and a line", err)
	}
}
