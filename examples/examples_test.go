// These tests run the examples as a reader would, and hold the README to them.
package examples_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	// What the programs are built of: go test runs them again when it changes.
	_ "github.com/neap-go/neap/core/lock"
	_ "github.com/neap-go/neap/core/script"
	_ "github.com/neap-go/neap/examples/usecases"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestSmallestPrograms builds and starts each, has a second one fail on the same port, and
// asks until it is limited: twenty at once are let through, and the drain of ten a second
// meanwhile. On a busy machine a decision may be made without Redis, after a budget of 50 ms.
func TestSmallestPrograms(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{"nethttp", "gin", "echo", "fiber", "newer/echo5", "newer/fiber3", "newer/hertz"} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			binary := build(t, framework)
			addr := redistest.StartProgram(t, func(addr string) *exec.Cmd {
				return command(t.Context(), binary, addr, srv.Addr())
			}, redistest.Listens)
			again, stop := context.WithTimeout(t.Context(), time.Minute)
			if out, err := command(again, binary, addr, srv.Addr()).CombinedOutput(); err == nil || again.Err() != nil {
				t.Errorf("a program that cannot listen: got %v, %v, want it to end with an error:\n%s", err, again.Err(), out)
			}
			stop()
			began := time.Now()
			admitted := 0
			for range 1000 {
				response, err := http.Get("http://" + addr + "/hello")
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(response.Body)
				response.Body.Close()
				if response.StatusCode == http.StatusTooManyRequests {
					took := time.Since(began)
					most := 20 + int(took/(100*time.Millisecond)) + 1 + int(took/limit.DefaultBudget)
					if admitted < 20 || admitted > most {
						t.Errorf("%d were admitted in %v, want 20 to %d", admitted, took, most)
					}
					if response.Header.Get("Retry-After") != "1" || response.Header.Get("RateLimit") == "" {
						t.Errorf("the header of a denied request is %v, want Retry-After: 1 and a RateLimit",
							response.Header)
					}
					return
				}
				if response.StatusCode != http.StatusOK || string(body) != "hello\n" {
					t.Fatalf("got %d %q, want 200 \"hello\\n\"", response.StatusCode, body)
				}
				admitted++
			}
			t.Error("a thousand requests were never limited, want a 429")
		})
	}
}

// build builds a program in the module that its directory is of.
func build(t *testing.T, example string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), filepath.Base(example))
	args := []string{"build", "-C", example, "-ldflags=-w", "-o", binary}
	if redistest.Race { // what the race detector needs is compiled already
		args = append(args, "-race")
	}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("building %s: got %v, want no error\n%s", example, err, out)
	}
	return binary
}

// TestPlays runs the programs that find out by themselves whether all is well.
func TestPlays(t *testing.T) {
	t.Parallel()
	calls := []string{"-share=70", "-for=12s"} // a busy machine sends them less evenly
	if redistest.Ops(1000) > 50 {              // as in make soak
		calls = []string{"-for=60s"}
	}
	for name, c := range map[string]struct{ args, says []string }{
		"cron":         {nil, []string{"was killed\n", "6 ticks, each completed once: process-"}},
		"partner":      {calls, []string{"5 processes, ", "and refused 0; after its pause of 5s, 0 came too early"}},
		"sequence":     {nil, []string{"single: 8 processes took 2400 numbers", "block: 8 processes took 2400", "each once, and larger"}},
		"cacherebuild": {nil, []string{"nothing is cached: 1000 requests", "the entry is stale: 1000 requests", "source queries: 1\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := build(t, name)
			for where, args := range map[string][]string{
				"embedded":   nil,
				"standalone": {"-redis", redistest.Standalone(t).AdminURL()},
			} {
				t.Run(where, func(t *testing.T) {
					t.Parallel()
					out, err := exec.CommandContext(t.Context(), binary, slices.Concat(args, c.args)...).CombinedOutput()
					if err != nil {
						t.Errorf("the program ended with %v, want no error:\n%s", err, out)
					}
					for _, part := range c.says {
						if !strings.Contains(string(out), part) {
							t.Errorf("the program did not say %q, want it in:\n%s", part, out)
						}
					}
				})
			}
		})
	}
}

// TestNoProgramPrintsThePassword of a URL that it cannot use.
func TestNoProgramPrintsThePassword(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]bool{}
	for _, file := range files {
		text := read(t, file)
		if strings.Contains(text, `"redis", "", backend.FlagUsage)`) || strings.Contains(text, "quickstart.Quickstart{") {
			programs[filepath.Dir(file)] = true
		}
	}
	if len(programs) < 6 {
		t.Errorf("%d programs take -redis, want 6 at least", len(programs))
	}
	for name := range programs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := build(t, name)
			for _, url := range []string{
				"redis://u:s3cret@host:bad port", "redis://u:s3cret@%zz", "redis://u:s3cret@host/zero",
				"http://u:s3cret@host", "redis://u:s3cret@127.0.0.1:1", "redis://u:s3cret@host?addr=bad port:1",
			} {
				out, err := exec.CommandContext(t.Context(), binary, "-redis", url).CombinedOutput()
				if err == nil || strings.Contains(string(out), "s3cret") || !strings.Contains(string(out), "-redis") {
					t.Errorf("%s: got %v, want an error, with -redis and without the password in:\n%s", url, err, out)
				}
			}
		})
	}
}

func command(ctx context.Context, binary, addr, redisAddr string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = append(os.Environ(), "ADDR="+addr, "REDIS_ADDR="+redisAddr, "GIN_MODE=release")
	return cmd
}
