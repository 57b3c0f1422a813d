package lock_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// childEnv has the test binary be one of the children instead of testing: its
// name and its words.
const childEnv = "NEAP_TEST_CHILD"

// children are what it can be.
var children = map[string]func(words []string){"once": onceChild, "sleeper": sleeper, "writer": writer}

// child is a process of the test binary: lines go in and come out.
type child struct {
	*exec.Cmd
	in    io.Writer
	lines *bufio.Reader
}

// startChild starts a child, which is killed when the test ends. Its standard
// input ends with this process.
func startChild(t *testing.T, name string, words ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0])}
	c.Env = append(os.Environ(), childEnv+"="+strings.Join(append([]string{name}, words...), " "))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in, c.lines = in, bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// line is the next line that the child says.
func (c *child) line(t *testing.T) string {
	t.Helper()
	text, err := c.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the child said %q: %v", text, err)
	}
	return strings.TrimSuffix(text, "\n")
}

// tell sends the child a line.
func (c *child) tell(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		t.Fatal(err)
	}
}

// childClient is a child's client, as the library's user.
func childClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, Username: redistest.User, Password: redistest.Password})
}

// wantsWaking waits until a record says that somebody wants to be woken.
func wantsWaking(t *testing.T, admin redis.UniversalClient, record string) {
	t.Helper()
	redistest.Await(t, soon, "a waiter to ask to be woken", func() bool {
		how, _ := admin.HGet(t.Context(), record, "wake").Result()
		return how != ""
	})
}

// runRecord is the record of a tick.
func runRecord(prefix, job string, tick time.Time) string {
	return fmt.Sprintf("%s:%d", recordOf(prefix, job), tick.UnixMilli())
}
