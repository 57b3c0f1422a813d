package store

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/script"
)

// silence is for how long a node has not answered when a failure makes it lost, and
// for how long no call has failed when it is back.
const silence = time.Second

// node is what is known of a server.
type node struct {
	address string
	logger  *slog.Logger // nil is slog.Default, when something is logged

	met      atomic.Bool  // it has answered once
	answered atomic.Int64 // when it last did, in nanoseconds; before that, when it was first asked
	missed   atomic.Int64 // when a call last had no answer or was held back, in nanoseconds; 0 when all is well

	mu     sync.Mutex
	lost   bool
	since  time.Time // when the first of the failures was
	failed int       // calls without an answer, and those that were held back
}

func newNode(address string, logger *slog.Logger) *node {
	n := &node{address: address, logger: logger}
	n.answered.Store(time.Now().UnixNano())
	return n
}

// note learns from a call: err is nil or the answer's where there was one. open says
// that the breaker is.
func (n *node) note(err error, open bool) {
	now := time.Now()
	if !answered(err) {
		n.fail(now, err, open)
		return
	}
	n.answered.Store(now.UnixNano())
	if !n.met.Load() {
		n.met.Store(true)
	}
	if missed := n.missed.Load(); missed != 0 && now.Sub(time.Unix(0, missed)) >= silence {
		n.recover(now)
	}
}

// fail notes a call without an answer, and logs once that the node is lost.
func (n *node) fail(now time.Time, err error, open bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.missed.Swap(now.UnixNano()) == 0 {
		n.since, n.failed = now, 0
	}
	n.failed++
	if n.lost || !open && now.Sub(time.Unix(0, n.answered.Load())) < silence {
		return
	}
	n.lost = true
	n.log().Warn("neap: Redis does not answer",
		"address", n.address, "class", classOf(err), "failed", n.failed, "for", now.Sub(n.since).Round(time.Millisecond))
}

// recover forgets the failures, and logs that a lost node is back.
func (n *node) recover(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	missed := n.missed.Load()
	if missed == 0 || now.Sub(time.Unix(0, missed)) < silence {
		return
	}
	n.missed.Store(0)
	if !n.lost {
		return
	}
	n.lost = false
	n.log().Info("neap: Redis answers again",
		"address", n.address, "failed", n.failed, "for", time.Unix(0, missed).Sub(n.since).Round(time.Millisecond))
}

func (n *node) log() *slog.Logger {
	if n.logger != nil {
		return n.logger
	}
	return slog.Default()
}

// classOf is the class of an error, without its text, which may name keys.
func classOf(err error) string {
	if failure, is := errors.AsType[*script.Error](err); is {
		return failure.Class.Error()
	}
	return "canceled by the caller"
}
