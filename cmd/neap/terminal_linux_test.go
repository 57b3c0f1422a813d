package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/neap-go/neap/internal/redistest"
)

// terminals are the two ends of a new terminal: what a person has, and what a session has.
func terminals(t *testing.T) (person, session *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = person.Close() })
	must(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	must(t, err)
	session, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return person, session
}

// TestLockRunInATerminal: the command may read from it, Ctrl-Z stops nothing, and the script may read when the command has
// ended, or could not be run.
func TestLockRunInATerminal(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	dir := t.TempDir()
	garbage := dir + "/garbage"
	must(t, os.WriteFile(garbage, []byte("\x00\x01"), 0o700))
	person, session := terminals(t)
	script := `"$@" -- sh -c 'echo up; read line; echo "the command has $line"'; read line; echo "the script has $line"
		"$@" -- ` + garbage + `; echo "status $?"; read line; echo "the script has $line"`
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", slices.Concat([]string{"-c", script, "sh", os.Args[0]}, lockRunArgs(p, "jobs", "nightly"))...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = session, session, session
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // neap too, and so all that reads
	must(t, cmd.Start())
	must(t, session.Close())
	var all strings.Builder
	for lines := bufio.NewScanner(person); lines.Scan(); { // until no process has the other end
		fmt.Fprintln(&all, lines.Text())
		if strings.HasPrefix(lines.Text(), "up") {
			_, err := person.WriteString("\x1afirst\nsecond\nthird\n")
			must(t, err)
		}
	}
	_ = cmd.Wait()
	said{cmd.ProcessState.ExitCode(), all.String(), ""}.wants(t, 0, "the command has first", "the script has second", "status 126", "the script has third")
}
