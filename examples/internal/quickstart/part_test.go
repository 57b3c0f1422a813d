package quickstart

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // as Main does
	redistest.Main(m)
}

// scripted is a quickstart whose other program is a script, and the directory that
// this one was built in.
func scripted(script string) (q Quickstart, dir *string) {
	dir = new(string)
	return Quickstart{
		Frameworks: []Framework{{Name: "far", Title: "Far"}, {Name: "further", Title: "Further"}},
		Build: func(_ context.Context, in string) (string, error) {
			*dir = in
			program := filepath.Join(in, "program")
			// A process that a test beside this one starts may inherit a file that this one
			// writes, and Linux runs none that is open for writing.
			write := exec.Command("tee", program)
			write.Stdin = strings.NewReader("#!/bin/sh\n" + script)
			return program, errors.Join(write.Run(), os.Chmod(program, 0o700))
		},
	}, dir
}

// TestThePartsOfAnotherProgram: the demo shows them in their place, and its error has
// what they say is off.
func TestThePartsOfAnotherProgram(t *testing.T) {
	t.Parallel()
	const asked = `test "$1 $2 $4 $6 $7" = "part -framework -redis -addr 127.0.0.1:0" || exit 9; `
	const lines = "Limits kept in an embedded Redis.\nshown: far\nshown: further\n"
	for name, c := range map[string]struct {
		script         string
		code           int
		stdout, stderr string
	}{
		"as expected": {asked + `echo "shown: $3"`, 0, lines + "\nEvery count is as expected. It took ", ""},
		"with a log":  {asked + `echo "shown: $3"; echo "log: $3" >&2`, 0, lines + "\nEvery", "log: far\nlog: further\n"},
		"off": {
			asked + `echo "shown: $3"; echo "$3 is off" >&2; exit 1`, 1,
			lines, "quickstart: not as expected:\nfar is off\nfurther is off\n",
		},
		"killed": {`kill -9 $$`, 1, "Limits", "quickstart: not as expected:\nFar: signal: killed\n\nFurther: signal: killed\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, dir := scripted(c.script)
			var stdout, stderr strings.Builder
			code := q.Run(t.Context(), nil, &stdout, &stderr)
			if code != c.code || !strings.HasPrefix(stdout.String(), c.stdout) || stderr.String() != c.stderr {
				t.Errorf("got the exit status %d, want %d\n%s\nwant %s\n%q\nwant %q",
					code, c.code, stdout.String(), c.stdout, stderr.String(), c.stderr)
			}
			if code != 0 && strings.Contains(stdout.String(), "as expected") {
				t.Errorf("got %q, want nothing to be said to be as expected", stdout.String())
			}
			assertGone(t, *dir)
		})
	}
}

// TestServedByAnotherProgram: it has the same arguments and this one's streams, and
// its exit status is this one's.
func TestServedByAnotherProgram(t *testing.T) {
	t.Parallel()
	q, dir := scripted(`echo "$@"; echo oh >&2; exit 7`)
	var stdout, stderr strings.Builder
	code := q.Run(t.Context(), []string{"-serve", "-framework", "further", "-budget", "1s"}, &stdout, &stderr)
	if code != 7 || stdout.String() != "part -serve -framework further -budget 1s\n" || stderr.String() != "oh\n" {
		t.Errorf("got the exit status %d, %q and %q, want 7 and what the program said", code, stdout.String(), stderr.String())
	}
	assertGone(t, *dir)
}

// TestAnInterruptReachesTheOtherProgram: its standard input ends, and it has the time
// to end by itself.
func TestAnInterruptReachesTheOtherProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   string
		code   int
		stderr string
	}{
		{"-framework far", 1, "quickstart: interrupted in Far\n"},
		{"-framework far -serve", 3, "removed its keys\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			q, dir := scripted(`echo begun; cat; echo "removed its keys" >&2; exit 3`)
			ctx, interrupt := context.WithCancel(t.Context())
			var stderr strings.Builder
			code := q.Run(ctx, strings.Fields(c.args), writer(func(text string) {
				if strings.Contains(text, "begun") {
					interrupt()
				}
			}), &stderr)
			if code != c.code || stderr.String() != c.stderr {
				t.Errorf("got the exit status %d and %q, want %d and %q", code, stderr.String(), c.code, c.stderr)
			}
			assertGone(t, *dir)
		})
	}
}

func TestAProgramThatCannotBeBuilt(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "-serve -framework far", "-framework further"} {
		q, dir := scripted("")
		build := q.Build
		q.Build = func(ctx context.Context, in string) (string, error) {
			_, err := build(ctx, in)
			return "", errors.Join(err, errors.New("no compiler"))
		}
		var stdout, stderr strings.Builder
		code := q.Run(t.Context(), strings.Fields(args), &stdout, &stderr)
		if code != 1 || stdout.Len() > 0 || stderr.String() != "quickstart: no compiler\n" {
			t.Errorf("%s: got the exit status %d, %q and %q, want 1 and the error", args, code, stdout.String(), stderr.String())
		}
		assertGone(t, *dir)
	}
}

func assertGone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); dir == "" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q: got %v, want it to be gone", dir, err)
	}
}

type writer func(string)

func (w writer) Write(text []byte) (int, error) {
	w(string(text))
	return len(text), nil
}

// TestAPartThatServesSaysItsName, since nobody says it before its words.
func TestAPartThatServesSaysItsName(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var stderr strings.Builder
	code := Quickstart{Frameworks: []Framework{NetHTTP}}.Run(t.Context(),
		[]string{part, "-serve", "-addr", taken.Addr().String()}, io.Discard, &stderr)
	if said := stderr.String(); code != 1 || !strings.HasPrefix(said, "quickstart: listen tcp ") ||
		!strings.HasSuffix(said, "; choose another address with -addr\n") {
		t.Errorf("got the exit status %d and %q, want 1, the name, the cause and -addr", code, said)
	}
}
