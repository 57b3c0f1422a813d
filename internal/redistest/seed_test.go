package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestAFailureTellsItsSeed is two tests: the child fails on purpose, after it has
// said what it generates; the parent runs it with three seeds.
func TestAFailureTellsItsSeed(t *testing.T) {
	t.Parallel()
	const env = "NEAP_TEST_FAIL_ON_PURPOSE"
	if os.Getenv(env) != "" {
		one, two := Rand(t), Rand(t)
		t.Errorf("drew %d, %d and %d", one.Uint64(), one.Uint64(), two.Uint64())
		return
	}
	drawn := map[string]string{}
	for _, set := range []string{"", "1", "2"} {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), env+"=1", seedEnv+"="+set)
		out, err := cmd.CombinedOutput()
		if _, failed := errors.AsType[*exec.ExitError](err); !failed {
			t.Fatalf("the child ended with %v, want a failure\n%s", err, out)
		}
		seed := set
		if seed == "" {
			seed = "1"
		}
		if !strings.Contains(string(out), seedEnv+"="+seed+" generates this") {
			t.Errorf("with seed %q the failure does not name the seed, want it named:\n%s", set, out)
		}
		m := regexp.MustCompile(`drew (\d+), (\d+) and (\d+)`).FindStringSubmatch(string(out))
		if m == nil || m[1] != m[3] || m[1] == m[2] {
			t.Fatalf("with seed %q it drew %q, want the same twice, and another number between", set, m)
		}
		drawn[set] = m[1]
	}
	if drawn[""] != drawn["1"] || drawn["1"] == drawn["2"] {
		t.Errorf("the seeds draw %v, want the same without one and with 1, and another with 2", drawn)
	}
}

func TestEachTestHasItsOwnSeed(t *testing.T) {
	t.Parallel()
	seen := map[uint64]string{}
	for run := range uint64(20) {
		for test := range 20 {
			who := fmt.Sprint(run, " TestX/", test)
			seed := seedOf(run, fmt.Sprint("TestX/", test))
			if other, ok := seen[seed]; ok {
				t.Errorf("%s and %s have one seed, want two", who, other)
			}
			seen[seed] = who
		}
	}
}
