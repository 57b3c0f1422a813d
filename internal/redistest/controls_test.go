package redistest

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFailEachFindsFaults in scripts that leave something behind when a command fails, or that hide the failure.
func TestFailEachFindsFaults(t *testing.T) {
	t.Parallel()
	s := Standalone(t)
	admin := s.Admin(t)
	for name, c := range map[string]struct{ source, want string }{
		"a good one":       {`redis.call('SET', KEYS[1], 1, 'PX', 60000) return redis.call('GET', KEYS[1])`, ""},
		"an immortal key":  {`redis.call('SET', KEYS[1], 1) return redis.call('PEXPIRE', KEYS[1], 60000)`, "a key never expires"},
		"a hidden failure": {`redis.pcall('GET', KEYS[1]) return redis.call('GET', KEYS[1])`, "failed unnoticed"},
		"no command":       {`return 1`, "no command failed"},
		"an endless one":   {`for _ = 1, 100 do redis.call('GET', KEYS[1]) end`, "it still fails at command 60"},
		"one of its own":   {`redis.call('GET', KEYS[1]) return redis.error_reply('ERR of its own')`, "want no error, or that it was made to fail"},
	} {
		key := s.Prefix(t)
		var failed []int
		said := fatal(t, func(tb testing.TB) {
			FailEach(tb, admin, Attempt{Source: c.source, Keys: []string{key}}, Save(t, admin, []string{key}), name,
				func(n int) { failed = append(failed, n) })
		})
		if c.want == "" && (said != "" || !slices.Equal(failed, []int{1, 2})) {
			t.Errorf("%s: got the failure %q, and a check of the commands %v, want none, and one of 1 and 2", name, said, failed)
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s: got the failure %q, want one with %q", name, said, c.want)
		}
	}
}

// TestUndoneTooLateFails, unless the machine stood still meanwhile.
func TestUndoneTooLateFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ago, stalled time.Duration
		fails        bool
	}{
		"at once":             {0, time.Hour, false},
		"late":                {time.Minute, 0, true},
		"late on a slow one":  {time.Minute, 20 * time.Second, false},
		"later than slow one": {time.Hour, 20 * time.Second, true},
	} {
		since := Since{stalled: func() time.Duration { return c.stalled }}
		since.Back()
		since.back = since.back.Add(-c.ago)
		said := fatal(t, func(tb testing.TB) { since.Undone(tb) })
		if got := strings.Contains(said, "given back after"); got != c.fails {
			t.Errorf("%s: got the failure %q, want one: %t", name, said, c.fails)
		}
	}
}

// TestARefusalOfASharedServerFailsTheRun is two tests: the child passes, but a shared server has refused it a command, so
// its process fails.
func TestARefusalOfASharedServerFailsTheRun(t *testing.T) {
	t.Parallel()
	const env = "NEAP_TEST_REFUSED_ON_PURPOSE"
	if on := os.Getenv(env); on != "" {
		switch on {
		case "standalone":
			_ = Standalone(t).Client(t).Incr(t.Context(), "neap:a").Err()
		case "cluster":
			_ = Cluster(t).Client(t).Incr(t.Context(), "neap:a").Err()
		case "none":
			_ = Standalone(t).Client(t).Get(t.Context(), "neap:a").Err()
		}
		return
	}
	require(t)
	for on, want := range map[string]string{"standalone": "command incr", "cluster": "command incr", "none": ""} {
		cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), env+"="+on)
		out, err := cmd.CombinedOutput()
		_, failed := errors.AsType[*exec.ExitError](err)
		if failed != (want != "") || !strings.Contains(string(out), want) || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%s: the child ended with %v, want its test passed, and an error with %q\n%s", on, err, want, out)
		}
	}
}
