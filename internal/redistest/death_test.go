package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// helperEnv turns the test binary into a process of tests that does what its
// value says.
const helperEnv = "REDISTEST_HELPER"

// helper starts the shared servers outside any test, prints where they are
// and how many the directory of each is, and then ends as it is told to.
func helper() {
	var servers []*Server
	s, err := sharedStandalone()
	if err != nil {
		panic(err)
	}
	servers = append(servers, s)
	if os.Getenv(helperEnv) == "cluster" {
		c, err := sharedCluster()
		if err != nil {
			panic(err)
		}
		servers = append(servers, c.nodes...)
	}
	for _, s := range servers {
		fmt.Println(s.addr, s.keeper.dir)
	}
	fmt.Println("ready")
	switch os.Getenv(helperEnv) {
	case "panic":
		panic("on purpose")
	case "paused":
		if err := s.keeper.tell("pause"); err != nil {
			panic(err)
		}
		fmt.Println("paused")
	}
	select {}
}

// A process of tests leaves nothing behind, however it ends.
func TestNothingOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	require(t)
	for _, how := range []string{"killed", "panic", "paused", "cluster"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), helperEnv+"="+how)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			last := "ready"
			if how == "paused" {
				last = "paused"
			}
			addrs, dirs := []string{}, []string{}
			for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != last; {
				if addr, dir, ok := strings.Cut(lines.Text(), " "); ok {
					addrs, dirs = append(addrs, addr), append(dirs, dir)
				}
			}
			if how != "panic" {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the process ended without an error, want one")
			}
			if want := map[string]int{"cluster": 1 + masters}[how]; len(addrs) != max(1, want) {
				t.Fatalf("it started %v, want %d servers", addrs, max(1, want))
			}
			for i, addr := range addrs {
				Await(t, 10*time.Second, addr+" to be gone", func() bool {
					conn, err := net.DialTimeout("tcp", addr, time.Second)
					if err == nil {
						conn.Close()
					}
					return err != nil
				})
				Await(t, 10*time.Second, dirs[i]+" to be gone", func() bool {
					_, err := os.Stat(dirs[i])
					return os.IsNotExist(err)
				})
			}
		})
	}
}

// runWithoutRedis runs tests in a process that finds no redis-server.
func runWithoutRedis(t *testing.T, ci string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{"PATH=" + filepath.Join(t.TempDir(), "empty"), "CI=" + ci}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

func TestMissingRedisSkipsLoudlyAndFailsInCI(t *testing.T) {
	t.Parallel()
	args := []string{"-test.v", "-test.run", "^(TestPauseAndResume|TestStandaloneIsShared)$"}
	out, err := runWithoutRedis(t, "", args...)
	if err != nil {
		t.Errorf("without redis-server: got %v, want no error\n%s", err, out)
	}
	if got := strings.Count(out, "SKIPPED"); got != 1 {
		t.Errorf("%d loud lines, want one:\n%s", got, out)
	}
	for _, want := range []string{"apt-get install redis-server", "brew install redis", "--- SKIP: TestPauseAndResume", "--- SKIP: TestStandaloneIsShared"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q, want it in:\n%s", want, out)
		}
	}
	out, err = runWithoutRedis(t, "true", args...)
	if err == nil || !strings.Contains(out, "--- FAIL: TestPauseAndResume") {
		t.Errorf("under CI=true: got %v, want an error, and the test failed\n%s", err, out)
	}
}
