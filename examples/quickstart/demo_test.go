package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/internal/redistest"
)

func TestTheDemoIsAsExpectedAndLeavesNoKeys(t *testing.T) {
	t.Parallel()
	// As admin: unlike the limits, the demo looks for its keys and removes them.
	redistest.Each(t, func(t *testing.T, _, rdb redis.UniversalClient, prefix string) {
		assertDemo(t, rdb, prefix)
	}, redistest.OnStandalone, redistest.OnCluster)
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		assertDemo(t, embedded(t), redistest.Prefix(t))
	})
}

func assertDemo(t *testing.T, rdb redis.UniversalClient, prefix string) {
	t.Helper()
	var wg sync.WaitGroup
	for _, f := range frameworks {
		wg.Go(func() {
			var out bytes.Buffer
			all := tour{
				framework: f, addr: "127.0.0.1:0", rdb: rdb, prefix: prefix + f.name,
				routes: demoRoutes(), steps: allSteps(),
			}
			if err := all.run(t.Context(), newScreen(&out)); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			assertPlain(t, out.String())
		})
	}
	wg.Wait()
	if left := keysWith(t, rdb, prefix); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// assertPlain holds a page to what a narrow terminal, or a file, can show.
func assertPlain(t *testing.T, page string) {
	t.Helper()
	for line := range strings.Lines(page) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.Contains(line, "\x1b") {
			t.Errorf("in colour, and no terminal: %q", line)
		}
	}
}

// keysWith are the keys with the text in their names, on all masters.
func keysWith(t *testing.T, rdb redis.UniversalClient, text string) []string {
	t.Helper()
	keys, err := backend.Keys(t.Context(), rdb, "*"+text+"*")
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// What is off here is so at any pace.
func TestTheDemoNamesARouteThatIsOff(t *testing.T) {
	t.Parallel()
	rdb := embedded(t)
	tooFew := []limit.Policy{limit.FixedWindow{Limit: permits - 1, Window: time.Hour}}
	var wg sync.WaitGroup
	for _, c := range []struct {
		path     string
		policies []limit.Policy // instead of the route's
		step     step
	}{
		{"/detail", nil, (*visit).burst},
		{"/detail", []limit.Policy{limit.SlidingLog{Limit: detail.Limit + 1, Window: time.Hour}}, (*visit).burst},
		{"/window", nil, (*visit).headers},
		{"/window", []limit.Policy{limit.FixedWindow{Limit: window.Limit, Window: time.Hour}}, (*visit).headers},
		{"/bucket", nil, (*visit).recovery},
		{"/bucket", []limit.Policy{limit.FixedWindow{Limit: bucket.Burst, Window: time.Hour}}, (*visit).recovery},
		{"/sliding", nil, (*visit).slidingRoute},
		{"/both", nil, (*visit).bothRoute},
		{"/both", []limit.Policy{bothBucket}, (*visit).bothRoute},
		{"/users/{id}", nil, (*visit).usersRoute},
		{"/users/{id}", []limit.Policy{users}, (*visit).usersRoute}, // by address
		{"/key", nil, (*visit).keyRoute},
		{"/cost", nil, (*visit).costRoute},
		{"/cost", []limit.Policy{cost}, (*visit).costRoute}, // each 1
		{"/login", nil, (*visit).loginRoute},
		{"/login", []limit.Policy{logins}, (*visit).loginRoute},
		{"/shadow", nil, (*visit).shadowRoute},
		{"/shadow", []limit.Policy{shadow}, (*visit).shadowRoute},
		{"/inflight", []limit.Policy{limit.FixedWindow{Limit: inflight - 1, Window: time.Hour}}, (*visit).inflightRoute},
		{"/inflight", []limit.Policy{limit.FixedWindow{Limit: inflight, Window: time.Hour}}, (*visit).inflightRoute},
		{"/orders", nil, (*visit).ordersRoute},
		{"/orders", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, (*visit).ordersRoute}, // no replay
		{"/free", []limit.Policy{limit.FixedWindow{Limit: atOnce - 1, Window: time.Hour}}, (*visit).freeRoute},
		{"/timeline/bucket", tooFew, (*visit).timeline},
		{"/timeline/window", tooFew, (*visit).timeline},
		{"/timeline/sliding", tooFew, (*visit).timeline},
		{"/timeline/log", tooFew, (*visit).timeline},
	} {
		wg.Go(func() {
			off := tour{
				framework: frameworks[0], addr: "127.0.0.1:0", rdb: rdb, prefix: redistest.Prefix(t),
				routes: demoRoutes(), steps: []step{c.step},
			}
			for i := range off.routes {
				if off.routes[i].path == c.path {
					was := off.routes[i]
					off.routes[i] = route{method: was.method, path: c.path, policies: c.policies, key: gate.ByIP(nil), work: was.work}
				}
			}
			var out bytes.Buffer
			err := off.run(t.Context(), newScreen(&out))
			if err == nil {
				t.Errorf("%s with %v: nothing was found\n%s", c.path, c.policies, out.String())
				return
			}
			fixed, _, _ := strings.Cut(c.path, "{")
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, frameworks[0].title+" "+fixed) {
					t.Errorf("%s with %v: not about it: %s", c.path, c.policies, line)
				}
			}
		})
	}
	wg.Wait()
}

// embedded is the Redis of those who have none.
func embedded(t *testing.T) redis.UniversalClient {
	t.Helper()
	s, err := backend.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.Redis
}
