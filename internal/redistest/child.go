package redistest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// childEnv has the test binary be a child: its name and its words.
const childEnv = "NEAP_TEST_CHILD"

// Child is a process of the test binary, to be stopped and killed as a process
// of a user's can be. Lines go in and come out.
type Child struct {
	*exec.Cmd
	in    io.Writer
	lines *bufio.Reader
}

// StartChild starts the child of that name with words, which have no spaces. It
// is killed when the test ends, and its standard input ends with this process.
func StartChild(tb testing.TB, name string, words ...string) *Child {
	tb.Helper()
	c := &Child{Cmd: exec.Command(os.Args[0])}
	c.Env = append(os.Environ(), childEnv+"="+strings.Join(append([]string{name}, words...), " "))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	c.in, c.lines = in, bufio.NewReader(out)
	if err := c.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Kill)
	return c
}

// Kill kills the child (SIGKILL), and returns when it is gone. It may be called
// again.
func (c *Child) Kill() {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// Stop stops the child (SIGSTOP), and returns when none of its threads runs.
func (c *Child) Stop(tb testing.TB) {
	tb.Helper()
	err := c.Process.Signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	for waiting := err == nil; waiting; {
		_, err = syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil)
		waiting = err == syscall.EINTR
	}
	if err != nil || !status.Stopped() {
		tb.Fatalf("redistest: stopping a child: got the status %#x, %v", status, err)
	}
}

// Resume lets a stopped child run on.
func (c *Child) Resume() { _ = c.Process.Signal(syscall.SIGCONT) }

// Next waits for the next line that the child says; the error says that there is
// none, since the child has ended.
func (c *Child) Next() (string, error) {
	text, err := c.lines.ReadString('\n')
	return strings.TrimSuffix(text, "\n"), err
}

// Line is Next, and fails the test when the child has ended.
func (c *Child) Line(tb testing.TB) string {
	tb.Helper()
	text, err := c.Next()
	if err != nil {
		tb.Fatalf("the child said %q, %v, want a line", text, err)
	}
	return text
}

// Tell sends the child a line.
func (c *Child) Tell(tb testing.TB, line string) {
	tb.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		tb.Fatal(err)
	}
}

// RunChild has a process that [StartChild] started be the child, and end with
// it; in any other it returns at once. It stands before [Main] in TestMain.
func RunChild(children map[string]func(words []string)) {
	line, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	words := strings.Fields(line)
	children[words[0]](words[1:])
	os.Exit(0)
}

// ChildClient is a child's client of a server, as the library's user.
func ChildClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, Username: User, Password: Password})
}
