package behind

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// haproxyConfig has a server time-out that ends long before the budget. HAProxy then ends
// the connection on both sides.
const haproxyConfig = `
defaults
  mode tcp
  timeout connect 1s
  timeout client 1m
  timeout server 3s
listen redis
  bind ADDRESS
  server redis SERVER
`

// haproxy starts HAProxy before a server, and returns its address.
func haproxy(t *testing.T, server string) (address string) {
	t.Helper()
	binary := redistest.NeedProgram(t, "haproxy", "apt-get install haproxy, or make haproxy")
	return redistest.StartProgram(t, func(addr string) *exec.Cmd {
		config := filepath.Join(t.TempDir(), "haproxy.cfg")
		text := strings.NewReplacer("SERVER", server, "ADDRESS", addr).Replace(haproxyConfig)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.Command(binary, "-db", "-q", "-f", config)
	}, redistest.Listens)
}

// TestHAProxy stops the server behind HAProxy while each primitive makes a call. HAProxy
// ends the connections before the budget is over. When the server goes on, it runs what it
// has received, and nothing of that is left behind.
func TestHAProxy(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix, front := srv.Prefix(t), haproxy(t, srv.Addr())
	open := func(rdb *redis.Client) *side {
		return newSide(t, storetest.Open(t, rdb, store.Options{Prefix: prefix, Budget: budget}))
	}
	there := open(srv.Client(t))
	if err := there.warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	type asked struct {
		call

		rdb *redis.Client
	}
	all := map[string]asked{}
	for name, prepare := range calls {
		rdb := srv.Client(t, func(o *redis.Options) { o.Addr, o.ContextTimeoutEnabled = front, true })
		all[name] = asked{prepare(t, open(rdb), there, name), rdb}
	}
	var pings sync.WaitGroup
	for name, c := range all { // HAProxy has ended connections that were idle
		pings.Go(func() {
			if err := c.rdb.Ping(t.Context()).Err(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	pings.Wait()
	srv.Pause(t)
	var doubted atomic.Int64
	var asks sync.WaitGroup
	for name, c := range all {
		asks.Go(func() {
			switch err := c.ask(t.Context()); {
			case errors.Is(err, script.ErrMaybeExecuted):
				doubted.Add(1)
			case !errors.Is(err, script.ErrNotExecuted) && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("%s: got %v, want ErrMaybeExecuted, or ErrNotExecuted if HAProxy had ended the connection before", name, err)
			}
		})
	}
	asks.Wait()
	srv.Resume(t)
	for name, c := range all {
		backWithin(t, c.call, name)
	}
	if doubted.Load() == 0 {
		t.Error("got no call in doubt, want some")
	}
}
