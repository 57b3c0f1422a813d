package quickstart

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/internal/redistest"
)

// What is off here is so at any pace. It is not parallel: so many tours at once would keep
// other tests from the processor for longer than a call may take.
func TestTheDemoNamesARouteThatIsOff(t *testing.T) { //nolint:paralleltest // as said
	rdb := embedded(t)
	hourly := func(n int64) limit.Policy { return limit.FixedWindow{Limit: n, Window: time.Hour} }
	var wg sync.WaitGroup
	for _, c := range []struct {
		path   string
		policy limit.Policy // instead of the route's; nil is none
	}{
		{"/detail", nil},
		{"/detail", limit.SlidingLog{Limit: detail.Limit + 1, Window: time.Hour}},
		{"/window", nil},
		{"/window", hourly(window.Limit)},
		{"/bucket", nil},
		{"/bucket", hourly(bucket.Burst)},
		{"/sliding", nil},
		{"/both", nil},
		{"/both", bothBucket},
		{"/users/{id}", nil},
		{"/users/{id}", users}, // by address
		{"/key", nil},
		{"/cost", nil},
		{"/cost", cost}, // each 1
		{"/login", nil},
		{"/login", logins},
		{"/shadow", nil},
		{"/shadow", shadow},
		{"/tokens", nil},
		{"/tokens", tokens}, // each 1
		{"/daily", nil},
		{"/daily", hourly(daily.Limit)}, // no midnight
		{"/three/{plan}/{user}", nil},
		{"/three/{plan}/{user}", threeUser}, // by address
		{"/ban", nil},
		{"/ban", hourly(strict.Limit)}, // without a ban
		{"/queue", nil},
		{"/queue", queue}, // without waiting
		{"/inflight", hourly(running - 1)},
		{"/inflight", hourly(running)},
		{"/exclusive", hourly(1)},
		{"/orders", nil},
		{"/orders", hourly(1)}, // no replay
		{"/free", hourly(atOnce - 1)},
		{"/timeline/bucket", hourly(permits - 1)},
		{"/timeline/window", hourly(permits - 1)},
		{"/timeline/sliding", hourly(permits - 1)},
		{"/timeline/log", hourly(permits - 1)},
	} {
		wg.Go(func() {
			off := tour{
				framework: NetHTTP, addr: "127.0.0.1:0", rdb: rdb, prefix: redistest.Prefix(t),
				routes: func(w *wiring) []Route { return replaced(w, c.path, c.policy) }, steps: stepsOf(c.path),
			}
			var out bytes.Buffer
			err := off.run(t.Context(), newScreen(&out))
			if err == nil {
				t.Errorf("%s with %v: got no error, want one that names it\n%s", c.path, c.policy, out.String())
				return
			}
			fixed, _, _ := strings.Cut(c.path, "{")
			want := NetHTTP.Title + " " + fixed
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, want) {
					t.Errorf("%s with %v: got %q, want it to begin with %q", c.path, c.policy, line, want)
				}
			}
		})
	}
	wg.Wait()
}

// replaced are the demo's routes, and one of them with another policy, by address.
func replaced(w *wiring, path string, policy limit.Policy) []Route {
	all := demoRoutes(w)
	i := slices.IndexFunc(all, func(r Route) bool { return r.Path == path })
	all[i].Gate = gate.Chain()
	if policy != nil {
		all[i].Gate = limited(w, path, gate.ByIP(nil), policy).Gate
	}
	return all
}

// stepsOf are the steps that send requests to a path.
func stepsOf(path string) []step {
	return slices.DeleteFunc(allSteps(), func(s step) bool { return s.path == "" || !strings.HasPrefix(path, s.path) })
}

// embedded is the Redis that runs within the process.
func embedded(t *testing.T) redis.UniversalClient {
	t.Helper()
	s, err := backend.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.Redis
}
