package gate_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
)

// Retry-After and the other fields report the ban if it lasts longer than the policy's
// wait, and otherwise the policy's wait.
func TestBanInTheFields(t *testing.T) {
	t.Parallel()
	window := limit.FixedWindow{Name: "w", Limit: 1, Window: time.Minute}
	for name, c := range map[string]struct {
		policy limit.Policy
		retry  []string // of each denial
		fields string   // of the last
	}{
		"the longer":    {limit.WithBan(window, limit.Ban{After: 2, Within: time.Minute, For: time.Hour}), []string{"60", "3600", "3600"}, `"w";r=0;t=3600`},
		"the shorter":   {limit.WithBan(window, limit.Ban{After: 2, Within: time.Minute, For: time.Second}), []string{"60", "60", "60"}, `"w";r=0;t=60`},
		"in the shadow": {limit.Shadow(limit.WithBan(window, limit.Ban{After: 1, Within: time.Minute, For: time.Hour})), nil, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var banned []bool
			g := gate.RateLimit(local(t, c.policy), everyone, &gate.RateLimitOptions{Render: func(d gate.Denial) gate.Reply {
				banned = append(banned, d.Decision.Banned())
				return gate.Reply{}
			}})
			if p := g.Enter(&request{}); p.Reply != nil {
				t.Fatalf("%s, the first: got %+v, want it to run", name, p.Reply)
			}
			for i, want := range c.retry {
				p := g.Enter(&request{})
				if p.Reply == nil {
					t.Fatalf("%s, denial %d: got none", name, i)
				}
				got := map[string]string{}
				for _, f := range p.Reply.Header {
					got[f.Name] = f.Value
				}
				if got["Retry-After"] != want || banned[i] != (i > 0) || i == 2 && !strings.Contains(got["Ratelimit"], c.fields) {
					t.Errorf("%s, denial %d: got %q, banned %t, want Retry-After %s, banned %t and in the end %s", name, i, got, banned[i], want, i > 0, c.fields)
				}
			}
			if c.retry == nil {
				if p := g.Enter(&request{}); p.Reply != nil || len(p.Header) > 0 {
					t.Errorf("%s: got %+v, want neither a reply nor fields", name, p)
				}
			}
		})
	}
}
