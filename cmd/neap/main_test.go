package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

// asCommand has the test binary be the command, in a process of its own.
const asCommand = "NEAP_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	redistest.Main(m)
}

// said is what a run has said.
type said struct {
	code      int
	out, errs string
}

// neap runs the command as a shell would.
func neap(t *testing.T, args ...string) said {
	t.Helper()
	return answering(t, "", args...)
}

// answering runs the command and types an answer.
func answering(t *testing.T, typed string, args ...string) said {
	t.Helper()
	return inEnv(t, nil, typed, args...)
}

func inEnv(t *testing.T, env map[string]string, typed string, args ...string) said {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, system{strings.NewReader(typed), &out, &errs, func(name string) string { return env[name] }})
	return said{code, out.String(), errs.String()}
}

// read runs a command with --json, and reads what it prints into a value.
func read[T any](t *testing.T, code int, args ...string) T {
	t.Helper()
	got := neap(t, append(args, "--json")...)
	if got.code != code || got.errs != "" {
		t.Fatalf("neap %q: got the status %d, %s%s, want %d and no error", args, got.code, got.out, got.errs, code)
	}
	return decode[T](t, got.out)
}

// wants fails the test unless a run ended so, and each text stands in what it printed.
func (s said) wants(t *testing.T, code int, texts ...string) {
	t.Helper()
	if s.code != code {
		t.Errorf("got the status %d, want %d; it said:\n%s%s", s.code, code, s.out, s.errs)
	}
	for _, text := range texts {
		if !strings.Contains(s.out+s.errs, text) {
			t.Errorf("got\n%s%s\nwant %q in it", s.out, s.errs, text)
		}
	}
}

func decode[T any](t *testing.T, text string) (result T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&result); err != nil {
		t.Fatalf("it printed %s: %v", text, err)
	}
	return result
}

// TestErrorsOfTheCommandLine are JSON if that is asked for, and one line however many the command line has.
func TestErrorsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	got := neap(t, "--json", "top", "-x")
	e := decode[struct {
		Error struct {
			Exit    int
			Message string
		}
	}](t, got.out)
	if got.code != exitUsage || e.Error.Exit != exitUsage || got.errs != "" {
		t.Errorf("got the status %d, %s%s, want an error in JSON", got.code, got.out, got.errs)
	}
	if got := neap(t, "a\nneap: all is well"); strings.Contains(got.errs, "\nneap: all") {
		t.Errorf("got %q, want no line of another's", got.errs)
	}
}

// TestAFaultOfNeapIsNoSuccess: a panic comes through, and does not end as status 0.
func TestAFaultOfNeapIsNoSuccess(t *testing.T) {
	t.Parallel()
	defer func() {
		if got := recover(); got != "a fault" {
			t.Errorf("got the panic %v, want that of the command", got)
		}
	}()
	code := run(t.Context(), []string{"top"}, system{strings.NewReader(""), io.Discard, io.Discard, func(string) string { panic("a fault") }})
	t.Errorf("got the status %d, want a panic", code)
}
