package history

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

// trouble is what befalls a server and its clients as a history goes on: replies
// are lost and late, connections end, scripts are flushed, and once the server
// stands still.
type trouble struct {
	srv   *redistest.Server
	admin *redis.Client
	proxy *redistest.Proxy
	mu    sync.Mutex
	rng   *rand.Rand
	pause int // at which operation
	done  int // operations that there was trouble for
}

// newTrouble starts a server of its own.
func newTrouble(t *testing.T) *trouble {
	t.Helper()
	srv := redistest.NewStandalone(t)
	return &trouble{srv: srv, admin: srv.Admin(t), proxy: srv.Proxy(t)}
}

// client is a client of the library's that meets with the trouble.
func (x *trouble) client(t *testing.T) *redis.Client {
	t.Helper()
	return x.srv.Client(t, func(o *redis.Options) {
		o.Dialer, o.PoolSize = x.proxy.Dial, 50
		o.ReadTimeout, o.WriteTimeout = 400*time.Millisecond, 400*time.Millisecond
	})
}

// begin begins the trouble of a history.
func (x *trouble) begin(seed uint64) {
	x.rng = rand.New(rand.NewPCG(seed, 0))
	x.pause, x.done = x.rng.IntN(perRun), 0
}

// reach makes the trouble that there is until so many operations were answered:
// by that, and not by how many were asked, since trouble that nothing can be
// answered in would breed more of it.
func (x *trouble) reach(t *testing.T, answered int) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	for ; x.done < answered; x.done++ {
		x.at(t, x.done)
	}
}

func (x *trouble) at(t *testing.T, op int) {
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
