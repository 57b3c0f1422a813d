package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// distantConn delays each answer.
type distantConn struct {
	net.Conn
	by time.Duration
}

func (c distantConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	time.Sleep(c.by)
	return n, err
}

// TestAConnectionIsMadeBesideCallsThatHaveNoTimeTo: the handshake of a connection takes
// longer than the budget, and the client gives up together with the call that needs the
// connection. A call over an existing connection has enough time.
func TestAConnectionIsMadeBesideCallsThatHaveNoTimeTo(t *testing.T) {
	t.Parallel()
	const budget = 200 * time.Millisecond
	rdb := redistest.Standalone(t).Client(t, func(o *redis.Options) {
		o.ContextTimeoutEnabled = true
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return distantConn{conn, budget * 5 / 8}, nil
		}
	})
	st := storetest.Open(t, rdb, store.Options{Prefix: redistest.Prefix(t), Budget: budget, FirstContact: time.Millisecond, Queue: store.Direct})
	ask := caller(t, st, one, redistest.Prefix(t))
	redistest.Await(t, 2*time.Minute, "an answer", func() bool { return ask() == nil })
}

// TestAColdStartBesideADeadMaster: keys of the dead master are asked for all the time,
// and its breaker opens. Redis decides the keys of the live masters.
func TestAColdStartBesideADeadMaster(t *testing.T) { //nolint:paralleltest // it takes the whole processor
	cluster := redistest.NewCluster(t, "--cluster-require-full-coverage", "no")
	rdb := cluster.Client(t, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true })
	dead := cluster.Nodes()[1]
	var live, lost []string
	for i := range 60 {
		s := fmt.Sprint("s", i)
		if cluster.NodeOf(t, "{"+s+"}") == dead {
			lost = append(lost, s)
		} else {
			live = append(live, s)
		}
	}
	dead.Stop(t)
	st := storetest.Open(t, rdb, store.Options{Prefix: redistest.Prefix(t), Budget: 200 * time.Millisecond})
	l := aLimitOf(t, st, 1e9, nil)
	var over atomic.Bool
	var hot sync.WaitGroup
	defer hot.Wait()
	defer over.Store(true)
	ask := func(keys []string, i int) bool {
		d, err := l.Take(t.Context(), keys[i%len(keys)])
		if err != nil {
			t.Errorf("Take: got %v, want a decision", err)
		}
		return !d.Degraded
	}
	for i := range 400 {
		hot.Go(func() {
			for ; !over.Load(); i++ {
				ask(lost, i)
				runtime.Gosched() // the others have their turn soon
			}
		})
	}
	redistest.Await(t, 2*time.Minute, "the breaker of the dead master to open", func() bool { return st.BreakerOpen(200 * time.Millisecond) })
	row := 0
	redistest.Await(t, 2*time.Minute, "twenty decisions in a row by live masters", func() bool {
		if row++; !ask(live, row) {
			row = 0
		}
		return row == 20
	})
}

// TestTheClassOfCallsThatWereNeverWritten, in the log and for observers, says that
// nothing has run. A client that routes reads the words of a command before it connects,
// and so do hooks.
func TestTheClassOfCallsThatWereNeverWritten(t *testing.T) {
	t.Parallel()
	reads := hook{single: func(_ context.Context, cmd redis.Cmder) error { _ = cmd.String(); _ = cmd.Args(); return nil }}
	hooked := unused(t)
	hooked.AddHook(reads)
	cluster := given(t)
	for name, rdb := range map[string]script.Client{"plain": unused(t), "hooked": hooked, "cluster": cluster} {
		for _, mode := range []store.QueueMode{store.Direct, store.Queued} {
			t.Run(fmt.Sprint(name, " ", mode), func(t *testing.T) {
				t.Parallel()
				neverWritten(t, rdb, mode)
			})
		}
	}
}

// given is a client of a cluster that does not ask Redis for its slots.
func given(t *testing.T) *redis.ClusterClient {
	t.Helper()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: unused(t).Options().Addr}}}}, nil
		},
	})
	t.Cleanup(func() { cluster.Close() })
	return cluster
}

// TestServersThatAreGivenAreKnown before any has answered.
func TestServersThatAreGivenAreKnown(t *testing.T) {
	t.Parallel()
	in, err := inside.Of(storetest.At(t, given(t), "p"))
	if err != nil {
		t.Fatal(err)
	}
	if in.Node(t.Context(), "k") == "" {
		t.Error("got no server of a key, want the one that was given")
	}
}

func neverWritten(t *testing.T, rdb script.Client, mode store.QueueMode) {
	t.Helper()
	var log lines
	var lost sync.Map
	st := storetest.Open(t, rdb, store.Options{
		Queue: mode, Logger: log.logger(), Budget: 20 * time.Millisecond, FirstContact: time.Millisecond,
	})
	st.Observe(func(_ context.Context, e store.Event) { lost.Store(e.Class, true) })
	ask := caller(t, st, increment, "k")
	redistest.Await(t, 2*time.Minute, "the server to be lost", func() bool {
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if err := ask(); !errors.Is(err, script.ErrNotExecuted) {
					t.Errorf("a refused port: got %v, want ErrNotExecuted", err)
				}
			})
		}
		all.Wait()
		return len(log.all()) > 0
	})
	if got := log.all()[0]; !strings.Contains(got, "not executed") {
		t.Errorf("got the line %q, want the class not executed", got)
	}
	if _, doubt := lost.Load(script.ErrMaybeExecuted); doubt {
		t.Error("got an event of a call that may have run, want none")
	}
}
