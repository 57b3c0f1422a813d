package history

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// faults make a server and its clients fail while a history is made: replies are lost
// or late, connections end, scripts are flushed, and once the server is paused.
type faults struct {
	srv   *redistest.Server
	admin *redis.Client
	proxy *redistest.Proxy
	mu    sync.Mutex
	rng   *rand.Rand
	pause int // at which operation
	done  int // operations that there were faults for
}

// newFaults starts a server of its own.
func newFaults(t *testing.T) *faults {
	t.Helper()
	srv := redistest.NewStandalone(t)
	return &faults{srv: srv, admin: srv.Admin(t), proxy: srv.Proxy(t)}
}

// client is a client of the library whose connections the faults affect.
func (x *faults) client(t *testing.T) *redis.Client {
	t.Helper()
	return x.srv.Client(t, func(o *redis.Options) {
		o.Dialer, o.PoolSize = x.proxy.Dial, 50
		o.ReadTimeout, o.WriteTimeout = 400*time.Millisecond, 400*time.Millisecond
	})
}

// begin begins the faults of a history.
func (x *faults) begin(seed uint64) {
	x.rng = rand.New(rand.NewPCG(seed, 0))
	x.pause, x.done = x.rng.IntN(perRun), 0
}

// reach makes the faults that are due once so many operations were answered. It counts
// answers, not questions: otherwise a fault that prevents all answers would cause more.
func (x *faults) reach(t *testing.T, answered int) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for ; x.done < answered; x.done++ {
		x.at(t, x.done)
	}
}

func (x *faults) at(t *testing.T, op int) {
	t.Helper()
	switch {
	case op == x.pause:
		x.srv.Pause(t)
		<-time.After(time.Duration(20+x.rng.IntN(300)) * time.Millisecond)
		x.srv.Resume(t)
	case op%25 == 0:
		x.proxy.Lose([]redistest.Fault{redistest.EOF, redistest.Reset}[x.rng.IntN(2)], 1, "evalsha", "eval")
	case op%200 == 60:
		x.proxy.Lose(redistest.Silence, 1, "evalsha", "eval")
	case op%250 == 110:
		x.admin.ScriptFlush(t.Context())
	case op%250 == 160:
		x.admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes")
	}
}
