package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/script"
)

// quiet is how long a node must not have answered before a failure makes it lost. It is
// also how long a node must have had no failure before an answer ends its outage.
const quiet = time.Second

// clock returns the time since the store was made, in nanoseconds and never 0. It does
// not jump if the machine's clock is set.
type clock struct{ began time.Time }

func (c clock) now() int64 { return int64(time.Since(c.began)) + 1 }

// node is what is known of a server.
type node struct {
	clock

	name   string       // as the log names it
	logger *slog.Logger // nil means slog.Default, as it is when a line is logged
	notify Observer
	slots  *reloader
	sweep  *atomic.Int64 // that of the nodes
	dialer *dialer
	client script.Client         // a client of this server; nil if there is none
	open   atomic.Int32          // how many breakers are not closed
	cause  atomic.Pointer[error] // the cause of the outage, once it is known

	connecting atomic.Bool
	refusal    atomic.Int64 // when a refusal was last logged; 0 if none was

	met   atomic.Bool  // it has answered once
	last  atomic.Int64 // when it last answered; before that, when it was first asked
	first atomic.Int64 // when the first of the failures was; 0 if there is none

	mu      sync.Mutex
	latest  int64 // when the last failure was
	lost    bool
	gone    bool // another node has replaced it, so a late failure is no outage
	failed  int  // calls without an answer, and calls that were held back
	untold  []change
	telling bool // a goroutine tells what is untold
}

// change is that the node is lost or back, as the log and the observers are told.
type change struct {
	event Event
	level slog.Level
	text  string
	args  []any
}

func newNode(of *nodes, name string, d *dialer, client script.Client) *node {
	n := &node{clock: of.clock, name: name, logger: of.logger, notify: of.notify, slots: &of.slots, sweep: &of.sweep, dialer: d, client: client}
	n.last.Store(n.now())
	return n
}

// answered notes an answer. The first answer after a time without a failure ends an
// outage.
func (n *node) answered() {
	n.last.Store(n.now())
	if !n.met.Load() {
		n.met.Store(true)
	}
	if n.first.Load() != 0 {
		n.back(n.rest(), textBack)
	}
}

// rest returns how long there must be no failure before an outage ends. While a breaker
// is open, that is a minute.
func (n *node) rest() int64 {
	if n.open.Load() > 0 {
		return int64(forgotten)
	}
	return int64(quiet)
}

// unanswered notes calls without an answer, or with a reply that is not known. It logs
// once that the node is lost, and then finds out why. It also finds out whether another
// node has taken over the slots.
func (n *node) unanswered(err error, calls int) (now int64) {
	now = n.now()
	n.mu.Lock()
	n.first.CompareAndSwap(0, now)
	since := n.first.Load()
	n.latest = now
	n.failed += calls
	failed := n.failed
	lost := !n.lost && !n.gone && (n.open.Load() > 0 || now-n.last.Load() >= int64(quiet))
	if lost {
		n.lost = true
		n.untold = append(n.untold, change{
			Event{Outcome: Lost, Class: ClassOf(err), Duration: span(since, now)}, slog.LevelWarn, "neap: Redis does not answer",
			append(codeOf(err), "class", classOf(err), "failed", failed, "for", span(since, now)),
		})
	}
	n.mu.Unlock()
	n.slots.failed(now, since, failed)
	if lost {
		n.sweep.Store(now + int64(forgotten))
		n.tell()
		if n.dialer != nil {
			background.Go(func() { n.diagnose(since) })
		}
	}
	return now
}

// heldBack notes a call that was not sent.
func (n *node) heldBack() (now int64) {
	now = n.now()
	n.mu.Lock()
	n.failed++
	failed := n.failed
	n.mu.Unlock()
	if since := n.first.Load(); since != 0 {
		n.slots.failed(now, since, failed)
	}
	return now
}

// back forgets the failures if there was none for a while. If the node was lost, it logs
// the end of the outage.
func (n *node) back(after int64, text string) {
	now := n.now()
	n.mu.Lock()
	since, lost, failed := n.first.Load(), n.lost, n.failed
	if since == 0 || now-n.latest < after {
		n.mu.Unlock()
		return
	}
	n.lost, n.failed = false, 0
	n.first.Store(0)
	n.cause.Store(nil)
	if lost {
		n.untold = append(n.untold, change{
			Event{Outcome: Back, Duration: span(since, now)}, slog.LevelInfo, text, []any{"failed", failed, "for", span(since, now)},
		})
	}
	n.mu.Unlock()
	n.tell()
}

// These are the texts that log the end of an outage.
const (
	textBack = "neap: Redis answers again"
	textGone = "neap: Redis is not asked any more" // it may have left the cluster
)

// leave ends the node, because another one replaces it or because it is not asked any
// more.
func (n *node) leave(text string) {
	n.mu.Lock()
	n.gone = true
	n.mu.Unlock()
	n.back(0, text)
}

// connect makes the client connect, on a context of its own: a call may not have the time
// to connect within its budget.
func (n *node) connect() {
	if n.client == nil || !n.connecting.CompareAndSwap(false, true) {
		return
	}
	background.Go(func() {
		defer n.connecting.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), defaultFirstContact)
		defer cancel()
		_ = n.client.Process(ctx, redis.NewStatusCmd(ctx, "ping"))
	})
}

func (n *node) isLost() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}

// idle reports whether the node had no call for that long.
func (n *node) idle(most time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now()-max(n.last.Load(), n.latest) > int64(most)
}

// diagnose finds out the cause of the outage that began at since.
func (n *node) diagnose(since int64) {
	err := n.dialer.diagnose(context.Background())
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil && n.lost && n.first.Load() == since {
		n.cause.Store(&err)
	}
}

// explain adds the cause of the outage, if it is known, to the error of a call.
func (n *node) explain(err error) error {
	cause := n.cause.Load()
	failure, is := errors.AsType[*script.Error](err)
	if cause == nil || !is || strings.HasSuffix(err.Error(), (*cause).Error()) {
		return err
	}
	return &script.Error{Script: failure.Script, Class: failure.Class, Err: fmt.Errorf("%w: %w", failure.Err, *cause)}
}

// tell logs the changes of the node and tells the observers, in the order in which they
// came: otherwise a server that was lost for a moment could seem lost for ever. If another
// goroutine is at it, that one tells these too. The goroutine may be that of a call that
// was granted something, so no handler and no observer may end it.
func (n *node) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.telling {
		return
	}
	n.telling = true
	for len(n.untold) > 0 {
		c := n.untold[0]
		n.untold = n.untold[1:]
		n.mu.Unlock()
		n.log(c.level, c.text, c.args...)
		c.event.Primitive, c.event.Name, c.event.Change = Server, n.name, true
		_ = background.Try(func() error {
			n.notify(context.Background(), c.event)
			return nil
		})
		n.mu.Lock()
	}
	n.telling = false
}

func (n *node) log(level slog.Level, text string, args ...any) {
	background.Log(n.logger, level, text, append([]any{"address", n.name}, args...)...)
}

func span(from, to int64) time.Duration { return time.Duration(to - from).Round(time.Millisecond) }

// codeOf returns the attribute that a line has if something replied in place of the
// server: the code of that reply, without its text.
func codeOf(err error) []any {
	failure, is := errors.AsType[*script.Error](err)
	if _, replied := errors.AsType[redis.Error](err); !is || !replied {
		return nil
	}
	return []any{"code", cmp.Or(failure.Code(), "none")}
}

// classOf returns the class of an error without its text, which may name keys.
func classOf(err error) string { return ClassOf(err).Error() }
