package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/neap-go/neap/core/callback"
)

// TestPlay runs the program, which finds out by itself whether all is well.
func TestPlay(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "payment")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: got %v, want no error\n%s", err, out)
	}
	for where, args := range map[string][]string{
		"embedded":   nil,
		"standalone": {"-redis-server", cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server")},
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
			if err != nil {
				t.Errorf("the program ended with %v, want no error:\n%s", err, out)
			}
			for _, p := range append(providers(), provider{name: "all"}) {
				// Six orders are booked with three events each, nothing else is, and
				// nothing is given up.
				if row := regexp.MustCompile(`(?m)^ *` + p.name + `( +\d+){3} +(18|144) +\d+ +0$`); !row.Match(out) {
					t.Errorf("%s has no row with all booked and nothing given up, want one in:\n%s", p.name, out)
				}
			}
		})
	}
}

// TestGitHubEvents: a sponsorship is booked. A comment is "created" too, and is not.
func TestGitHubEvents(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]entry{
		`{"action":"created","sponsorship":{"node_id":"s1","tier":{"monthly_price_in_cents":1000}}}`: {"payment s1", "s1", 1000, "USD"},
		`{"action":"created","issue":{"id":1},"comment":{"id":2}}`:                                   nothing,
	} {
		got, err := readGitHub(&callback.Event{Item: callback.Item{Payload: []byte(body)}})
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", body, got, err, want)
		}
	}
}
