package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/examples/internal/quickstart"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // as Main does
	dir, err := os.MkdirTemp("", "quickstart-test-")
	if err != nil {
		panic(err)
	}
	buildOnce = sync.OnceValues(func() (string, error) { return buildNewer(dir) })
	redistest.Main(m, func() { _ = os.RemoveAll(dir) })
}

// app is the program. Its tests share that of the newer frameworks.
var app = quickstart.Quickstart{
	Frameworks: frameworks,
	Build:      func(context.Context, string) (string, error) { return buildOnce() },
}

var buildOnce func() (program string, err error)

// buildNewer is newer, and has the race detector on when the tests have. It looks at
// what this module does not compile, so that go test runs again when that changes.
func buildNewer(dir string) (program string, err error) {
	for _, where := range []string{"../newer", "../newer/quickstart", "../../echo5limit", "../../fiber3limit", "../../hertzlimit"} {
		files, err := filepath.Glob(where + "/*")
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("%s has the files %q: %w", where, files, err)
		}
		for _, file := range files {
			if _, err := os.Stat(file); err != nil {
				return "", err
			}
		}
	}
	flags := []string{"-ldflags=-w"}
	if redistest.Race { // what the race detector needs is compiled already
		flags = append(flags, "-race")
	}
	return newer(newerModule(), flags...)(context.Background(), dir)
}

func TestRunSaysWhatIsWrongAndTheRemedy(t *testing.T) {
	t.Parallel()
	taken := redistest.Standalone(t).Addr()
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"-h", 0, []string{"-framework", "nethttp, gin, echo, echo5, fiber, fiber3, hertz", "-redis", "-addr", "-serve", "-budget", "250ms"}},
		{"-serve -budget -1s", 1, []string{"Budget", "-1s"}},
		{"-what", 2, []string{"-what"}},
		{"now", 2, []string{`"now"`, "flags"}},
		{"-framework rails", 2, []string{`"rails"`, "nethttp, gin, echo, echo5, fiber, fiber3, hertz"}},
		{"-redis localhost:6379", 1, []string{"redis://localhost:6379"}},
		{"-redis redis://:secret%zz@localhost:6379", 1, []string{"redis://localhost:6379"}},
		{"-redis redis://:secret@localhost:6379?what=1", 1, []string{"redis://localhost:6379"}},
		{"-redis redis://:secret@127.0.0.1:1", 1,
			[]string{"127.0.0.1:1", "start it", "correct -redis", "leave -redis out"}},
		{"-redis redis://:secret@127.0.0.1:1?addr=127.0.0.1:2", 1, []string{"127.0.0.1:1", "start it"}},
		{"-redis unix:///nowhere.sock", 1, []string{"/nowhere.sock", "start it"}},
		{"-framework gin -addr " + taken, 1, []string{taken, "-addr"}},
		{"-framework fiber -serve -addr " + taken, 1, []string{taken, "-addr"}},
		{"-framework echo5 -addr " + taken, 1, []string{"not as expected:\nlisten tcp " + taken, "-addr"}},
		{"-framework fiber3 -serve -addr " + taken, 1, []string{taken, "-addr"}},
		{"-framework hertz -addr " + taken, 1, []string{"listen tcp " + taken, "-addr"}},
		{"-framework fiber3 -serve -budget -1s", 1, []string{"Budget", "-1s"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			if code := app.Run(t.Context(), strings.Fields(c.args), &stdout, &stderr); code != c.code {
				t.Errorf("got the exit status %d, want %d", code, c.code)
			}
			for _, part := range c.says {
				if !strings.Contains(stderr.String(), part) {
					t.Errorf("got on stderr %q, want %q in it", stderr.String(), part)
				}
			}
			if strings.Contains(stderr.String(), "secret") {
				t.Errorf("got a password on stderr, want none: %s", stderr.String())
			}
		})
	}
}

func TestAnInterruptedDemoLeavesNoKeys(t *testing.T) {
	t.Parallel()
	for name, title := range map[string]string{"echo": "Echo v4", "echo5": "Echo v5"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			ctx, interrupt := context.WithCancel(t.Context())
			stdout, pipe := io.Pipe()
			go func() {
				for lines := bufio.NewScanner(stdout); lines.Scan(); {
					if strings.Contains(lines.Text(), "/users/bob") {
						interrupt()
					}
				}
			}()
			var stderr bytes.Buffer
			code := app.Run(ctx, []string{"-framework", name, "-redis", srv.AdminURL()}, pipe, &stderr)
			if want := "quickstart: interrupted in " + title + "\n"; code != 1 || stderr.String() != want {
				t.Errorf("got the exit status %d and %q, want 1 and %q", code, stderr.String(), want)
			}
			if left := keysWith(t, srv.Admin(t), ""); len(left) > 0 {
				t.Errorf("got the keys %q after the demo was interrupted, want none", left)
			}
		})
	}
}

// serving runs with -serve and returns where.
func serving(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	stdout, pipe := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- app.Run(ctx, append([]string{"-serve", "-addr", "127.0.0.1:0"}, args...), pipe, &stderr)
		pipe.Close()
	}()
	url := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if _, rest, ok := strings.Cut(lines.Text(), "curl -si "); ok {
				select {
				case url <- strings.TrimSuffix(strings.Fields(rest)[0], "/detail;"):
				default: // only the first is asked for
				}
			}
		}
		close(url)
	}()
	var at string
	t.Cleanup(func() {
		stop()
		// A connection that the client has dialed and not used keeps Fiber serving.
		redistest.Await(t, 30*time.Second, "it to end", func() bool {
			clientOf(strings.TrimPrefix(at, "http://")).CloseIdleConnections()
			select {
			case code := <-ended:
				if code != 0 {
					t.Errorf("got the exit status %d after an interrupt, want 0: %s", code, stderr.String())
				}
				return true
			default:
				return false
			}
		})
	})
	if at = <-url; at == "" {
		t.Fatalf("got no address from %q, want one: %s", args, stderr.String())
	}
	return at
}
