package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/neap-go/neap/internal/redistest"
)

// TestRefusedWrites has servers that refuse every write. They answer, so the status says that they refuse.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	for code, args := range map[string][]string{
		"READONLY":   {"--replicaof", "127.0.0.1 1"},
		"NOREPLICAS": {"--min-replicas-to-write", "1"},
		"OOM":        {"--maxmemory", "1", "--maxmemory-policy", "noeviction"},
		"MISCONF":    unsaved,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t, args...)
			if code == "MISCONF" {
				failSave(t, srv)
			}
			for _, flags := range [][]string{nil, {"--json"}} {
				var got said
				redistest.Await(t, 30*time.Second, "an attempt that the end of the time does not cut", func() bool {
					got = neap(t, slices.Concat([]string{
						"ban", "api", "user", "--for", "1m", "--policy", "window 5/1h ban 5/1m for 1m", "--timeout", "1s", "--url", srv.AdminURL(),
					}, flags)...)
					return got.code != exitAway
				})
				got.wants(t, exitRefused, code)
			}
		})
	}
}

// unsaved are the arguments of a server that refuses writes once [failSave] has made a snapshot fail.
var unsaved = []string{"--save", "3600 1000000", "--dbfilename", "dump.rdb"}

// failSave makes a snapshot of a server fail, by a directory that stands where the file should be.
func failSave(t *testing.T, srv *redistest.Server) {
	t.Helper()
	dir := srv.Admin(t).ConfigGet(t.Context(), "dir").Val()["dir"]
	must(t, os.MkdirAll(dir+"/dump.rdb/x", 0o700))
	_ = srv.Admin(t).BgSave(t.Context()).Err()
	redistest.Await(t, 30*time.Second, "the snapshot to fail", func() bool {
		return strings.Contains(srv.Admin(t).Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	})
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestAFullOutput has an output that takes nothing: the status says so, whatever the command found.
func TestAFullOutput(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	for _, args := range [][]string{
		{"doctor"}, {"doctor", "--json"}, {"top"}, {"top", "--json"}, {"peek", "api", "user"}, {"lock", "show", "orders", "17"}, {"lock", "show", "orders", "17", "--json"},
		{"ban", "api", "user", "--for", "1m", "--policy", "window 5/1h ban 5/1m for 1m"}, {"completion", "bash"}, {"--help"},
	} {
		if args[0] != "--help" && args[0] != "completion" {
			args = append(args, "--url", srv.AdminURL())
		}
		var errs bytes.Buffer
		code := run(t.Context(), args, system{strings.NewReader(""), full{}, &errs, noEnv})
		said{code, "", errs.String()}.wants(t, exitOutput, "neap: the output could not be written: no space left on device")
	}
	var errs bytes.Buffer
	code := run(t.Context(), []string{"top", "--json", "--url", "redis://127.0.0.1:1"}, system{strings.NewReader(""), full{}, &errs, noEnv})
	said{code, "", errs.String()}.wants(t, exitAway, "refused")
}

// TestAnOutputThatNobodyReads, as that of head once it has enough: the status says so, and neap says nothing.
func TestAnOutputThatNobodyReads(t *testing.T) {
	t.Parallel()
	reader, output, err := os.Pipe()
	must(t, err)
	must(t, reader.Close())
	defer output.Close()
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "completion", "bash")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stdout, cmd.Stderr = output, &errs
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exitOutput || errs.Len() > 0 {
		t.Errorf("got the status %d and %q, want %d and nothing said", code, errs.String(), exitOutput)
	}
}

// TestAnEmptySubject is a wrong command line, for each command that takes one.
func TestAnEmptySubject(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	for _, args := range [][]string{
		{"peek", "api", ""}, {"peek", "api", "", "--as-is"}, {"peek", "api", "a", ""}, {"reset", "api", "", "-y"}, {"unban", "api", ""}, {"ban", "api", "", "--for", "1m"},
		{"lock", "show", "jobs", ""}, {"guard", "show", "pay", ""}, {"stock", "left", "sale", ""},
	} {
		neap(t, slices.Concat(args, []string{"--url", srv.AdminURL()})...).wants(t, exitUsage, "empty")
	}
}

// TestInterruptedAtTheInput has a Ctrl-C while a command reads standard input.
func TestInterruptedAtTheInput(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	unending, keyboard := io.Pipe()
	defer keyboard.Close()
	go func() {
		_, _ = keyboard.Write([]byte("half a result"))
		interrupt()
	}()
	var errs bytes.Buffer
	code := run(ctx, []string{"guard", "resolve", "pay", "k", "--result", "-", "-y", "--url", "redis://127.0.0.1:1"}, system{unending, io.Discard, &errs, noEnv})
	said{code, "", errs.String()}.wants(t, exitLeft, "nothing was changed: interrupted")
}

// TestAnInputThatFails is a wrong command line.
func TestAnInputThatFails(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	torn, keyboard := io.Pipe()
	_ = keyboard.CloseWithError(errors.New("torn"))
	code := run(t.Context(), []string{"guard", "resolve", "pay", "k", "--result", "-", "-y", "--url", "redis://127.0.0.1:1"}, system{torn, io.Discard, &errs, noEnv})
	said{code, "", errs.String()}.wants(t, exitUsage, "--result: torn")
}

// TestRepliesThatMakeNoSense has servers whose replies make go-redis panic.
func TestRepliesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for command, reply := range map[string]string{
		"cluster":   "*9223372036854775807\r\n",
		"evalsha":   "*9223372036854775807\r\n",
		"info":      "$9223372036854775807\r\n",
		"subscribe": "*3\r\n:1\r\n:2\r\n:3\r\n",
	} {
		got := neap(t, "doctor", "--json", "--url", "redis://"+hostile(t, command, reply))
		got.wants(t, exitAway, `"message": "the server's reply makes no sense`)
	}
}

// hostile is the address of a server that has this reply to a command, and is a Redis otherwise.
func hostile(t *testing.T, to, reply string) string {
	t.Helper()
	return replying(t, func(command string, _ []string) string {
		if strings.EqualFold(command, to) {
			return reply
		}
		return ""
	}).Addr()
}

// replying is a Redis for which another replies; it replies itself where that says nothing.
func replying(t *testing.T, to func(command string, args []string) string) *miniredis.Miniredis {
	t.Helper()
	m := miniredis.RunT(t)
	m.Server().SetPreHook(func(peer *server.Peer, command string, args ...string) bool {
		reply := to(command, args)
		if reply != "" {
			peer.WriteRaw(reply)
		}
		return reply != ""
	})
	return m
}

// TestWhatAServerNamesTwiceIsListedOnce: SCAN and HSCAN name a key or a field twice if a table grows meanwhile.
func TestWhatAServerNamesTwiceIsListedOnce(t *testing.T) {
	t.Parallel()
	const key = "neap:limit:api:{user}:override"
	m := replying(t, func(command string, args []string) string {
		next := func(cursor string) string {
			return map[bool]string{true: "$1\r\n7\r\n", false: "$1\r\n0\r\n"}[cursor == "0"]
		}
		switch strings.ToLower(command) {
		case "cluster":
			return "-ERR This instance has cluster support disabled\r\n"
		case "scan":
			return fmt.Sprintf("*2\r\n%s*1\r\n$%d\r\n%s\r\n", next(args[0]), len(key), key)
		case "evalsha": // its arguments are the script, 1, the key, the cursor and how many
			return fmt.Sprintf("*5\r\n%s$3\r\nann\r\n$1\r\n5\r\n:2\r\n:-1\r\n", next(args[3]))
		}
		return ""
	})
	must(t, m.Set(key, "window 10/1h"))
	m.SetTTL(key, time.Hour)
	url := []string{"--url", "redis://" + m.Addr()}
	if got := read[overridePage](t, exitFound, append([]string{"limit", "list"}, url...)...); len(got.Subjects) != 1 {
		t.Errorf("got %+v, want the subject once", got)
	}
	if got := read[buyersPage](t, exitFound, append([]string{"stock", "buyers", "sale", "phone"}, url...)...); len(got.Buyers) != 1 || !got.All {
		t.Errorf("got %+v, want the buyer once", got)
	}
}
