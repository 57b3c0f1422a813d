package redistest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// skipped has the programs whose absence a terminal was told of.
var skipped sync.Map

// NeedProgram finds a program that a test needs beside Redis. Without it the test fails in
// make soak, which installs it. Elsewhere it is skipped, and a terminal sees that without -v
// too.
func NeedProgram(tb testing.TB, name, install string) (path string) {
	tb.Helper()
	for _, file := range []string{name, "/usr/sbin/" + name} { // which is not in everybody's PATH
		if path, err := exec.LookPath(file); err == nil {
			return path
		}
	}
	why := name + " is not installed: " + install
	if os.Getenv("NEAP_TEST_SCALE") != "" {
		tb.Fatal(why)
	}
	if _, told := skipped.LoadOrStore(name, true); !told {
		if tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
			fmt.Fprintf(tty, "\n*** neap: %s; the tests that need it are SKIPPED\n\n", why)
			tty.Close()
		}
	}
	tb.Skip(why)
	return ""
}

// StartProgram starts a program that listens at the address that command is given, and
// returns when it is ready. It is killed when the test ends. Another process may take the
// address first: then the program gets another one.
func StartProgram(tb testing.TB, command func(addr string) *exec.Cmd, ready func(addr string) bool) (addr string) {
	tb.Helper()
	for range 5 {
		port, err := freePort()
		if err != nil {
			tb.Fatal(err)
		}
		if addr := localAddr(port); tryProgram(tb, command(addr), func() bool { return ready(addr) }) {
			return addr
		}
	}
	tb.Fatal("redistest: a program found no free port in five tries")
	return ""
}

func tryProgram(tb testing.TB, cmd *exec.Cmd, ready func() bool) (is bool) {
	tb.Helper()
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed, or has said why it ended
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		if <-ended; tb.Failed() {
			tb.Logf("%s said:\n%s", cmd.Path, said.String())
		}
	})
	Await(tb, time.Minute, cmd.Path+" to be ready", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		is = ready()
		return is
	})
	if !is && !strings.Contains(strings.ToLower(said.String()), "address already in use") {
		tb.Fatalf("redistest: %s did not start", cmd.Path)
	}
	return is
}

// Listens reports whether something accepts connections there.
func Listens(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		conn.Close()
	}
	return err == nil
}
