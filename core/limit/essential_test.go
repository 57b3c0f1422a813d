package limit

import (
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/internal/wire"
	limitwire "github.com/neap-go/neap/core/limit/internal/wire"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// TestWhatPassesAnOpenBreaker: only the scripts that keep, conclude or take back what was
// granted do.
func TestWhatPassesAnOpenBreaker(t *testing.T) {
	t.Parallel()
	l := must(New(redistest.SameClient{}, "essential", OneOfEach, nil))(t)
	for s, want := range map[*script.Script]bool{
		l.remote.Script:       false,
		l.remote.Settle:       false,
		limitwire.ResetScript: false,

		l.remote.Late:         true,
		limitwire.RenewScript: true,
	} {
		if (*wire.Script)(s).IsEssential() != want {
			t.Errorf("does %s pass an open breaker: got %v, want %v", s.Name(), !want, want)
		}
	}
}

// TestALogThatExpiresAtOnce: if a server stands still between two commands of the script,
// a log of a few milliseconds may expire between them.
func TestALogThatExpiresAtOnce(t *testing.T) {
	t.Parallel()
	const sets = "try('PEXPIRE', key, longest)"
	source := lua.Lone("log").Text
	if !strings.Contains(source, sets) {
		t.Fatalf("the script: got no %q in it, want it, because this test replaces it", sets)
	}
	expires := script.New("limit_log.lua", strings.Replace(source, sets, "try('PEXPIRE', key, -1)", 1))
	runner := must(script.NewRunner(redistest.Standalone(t).Client(t), &script.Options{Budget: time.Minute}))(t)
	p := must(SlidingLog{Limit: 5, Window: time.Millisecond}.compile(false))(t)
	reply, err := runner.Run(t.Context(), expires, []string{redistest.Prefix(t) + "{s}"}, append(p.Numbers(), "1")...)
	if err != nil {
		t.Fatalf("a take with a log that expires at once: got the error %v, want a decision", err)
	}
	text, _ := reply.(string)
	if r, ok := p.UnpackText(text); !ok || r.Denied {
		t.Errorf("a take with a log that expires at once: got %v (%t), want a permit", r, ok)
	}
}
