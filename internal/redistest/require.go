package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// binary finds the server once a process.
var binary = sync.OnceValue(func() string {
	if path := os.Getenv("REDIS_SERVER"); path != "" {
		return path
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
})

const missing = "redis-server is not installed: tests on real Redis"

// require ends the test unless there is a redis-server to run it on.
func require(tb testing.TB) {
	tb.Helper()
	if binary() != "" {
		return
	}
	if os.Getenv("CI") == "true" {
		tb.Fatal(missing + " cannot run")
	}
	warn()
	tb.Skip(missing + " are skipped")
}

// warn says once a process, where it is seen, what was skipped. Without -v go
// test drops the output of packages that pass, so then the terminal gets it.
var warn = sync.OnceFunc(func() {
	out := os.Stderr
	if !testing.Verbose() {
		if tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
			defer tty.Close()
			out = tty
		}
	}
	fmt.Fprintf(out, "\n*** neap: %s are SKIPPED in %s; install it (apt-get install redis-server, brew install redis), or name one in REDIS_SERVER\n\n",
		missing, os.Args[0])
})
