package limit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// When a breaker opens, and for how long. Twenty failures in a row do not
// happen by chance while one call in three still succeeds; the ratio is for
// servers that now and then do answer.
const (
	tripInARow  = 20
	tripRatio   = 0.8
	tripOf      = 50 // calls at least for the ratio
	tripBudgets = 40 // how long failures count: as many budgets, since a lone caller spends one on each
	tripBuckets = 10
	hiccup      = 4 // budgets, for which failures must last: of a hiccup all callers of a moment fail together
	openFor     = 250 * time.Millisecond
)

// errOpen is the cause of a call that was not sent.
var errOpen = errors.New("not asked, since Redis could not answer lately")

// door runs scripts, and spares a Redis that does not answer: after a row of
// failures it lets a single call through every quarter second, until one
// succeeds.
type door struct {
	store  *store.Store
	runner *script.Runner
	budget time.Duration
	nodeOf func(ctx context.Context, key string) (*redis.Client, error)
	known  atomic.Bool // nodeOf knows the nodes, and asks nobody

	mu    sync.RWMutex
	nodes map[string]*node // by address
}

// node is what is known of a node of a cluster.
type node struct {
	*breaker

	clock  atomic.Pointer[sight] // nil when it was never seen
	failed atomic.Int64          // when a call last did, or was held back, in nanoseconds
}

type breaker = gobreaker.CircuitBreaker[any]

func newDoor(st *store.Store, budget time.Duration) (*door, error) {
	runner, err := script.NewRunner(st, &script.Options{Budget: budget})
	if err != nil {
		return nil, err
	}
	d := &door{store: st, runner: runner, budget: budget, nodes: make(map[string]*node)}
	switch c := st.Client().(type) {
	case *redis.ClusterClient:
		d.nodeOf = c.MasterForKey
	case *redis.Ring:
		d.nodeOf = func(_ context.Context, key string) (*redis.Client, error) { return c.GetShardClientForKey(key) }
	}
	return d, nil
}

// errOvertaken says that the caller's own context ended before half the budget
// was spent, which tells nothing of Redis.
var errOvertaken = errors.New("overtaken")

func newBreaker(budget time.Duration) *breaker {
	var row, first time.Time // when the row, and what is counted, began to fail
	return gobreaker.NewCircuitBreaker[any](gobreaker.Settings{
		MaxRequests:  1,
		Interval:     tripBudgets * budget,
		BucketPeriod: tripBudgets * budget / tripBuckets,
		Timeout:      openFor,
		ReadyToTrip: func(n gobreaker.Counts) bool { // after each failure, under the breaker's lock
			now := time.Now()
			if n.ConsecutiveFailures == 1 {
				row = now
			}
			if n.TotalFailures == 1 {
				first = now
			}
			return n.ConsecutiveFailures >= tripInARow && now.Sub(row) >= hiccup*budget ||
				n.Requests >= tripOf && float64(n.TotalFailures) >= tripRatio*float64(n.Requests) &&
					now.Sub(first) >= hiccup*budget
		},
		IsSuccessful: func(err error) bool {
			return errors.Is(err, script.ErrFailed) || errors.Is(err, script.ErrConfiguration) || err == nil
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errOvertaken) },
	})
}

// node is the one that holds a key, so that a dead node of a cluster does not
// take the others along.
func (d *door) node(ctx context.Context, key string) *node {
	address := ""
	if d.nodeOf != nil && d.known.Load() {
		if c, err := d.nodeOf(ctx, key); err == nil {
			address = c.Options().Addr
		}
	}
	d.mu.RLock()
	n := d.nodes[address]
	d.mu.RUnlock()
	if n != nil {
		return n
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes[address] == nil {
		d.nodes[address] = &node{breaker: newBreaker(d.budget)}
	}
	return d.nodes[address]
}

// run is script.Runner.Run behind the breaker. A call that is not sent fails
// with script.ErrNotExecuted.
func (d *door) run(ctx context.Context, s *script.Script, keys []string, args ...any) (any, error) {
	var callers error
	n := d.node(ctx, keys[0])
	reply, err := n.Execute(func() (any, error) {
		began := time.Now()
		reply, err := d.runner.Run(ctx, s, keys, args...)
		if err != nil && isCallers(err) {
			callers = err
			if time.Since(began) < d.budget/2 {
				return nil, errOvertaken
			}
		}
		return reply, err
	})
	if err != nil && !errors.Is(err, errOvertaken) {
		n.failed.Store(time.Now().UnixNano())
	}
	switch {
	case err == nil:
		d.answered()
		return reply, nil
	case callers != nil:
		return nil, callers
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		return nil, &script.Error{Script: s.Name(), Class: script.ErrNotExecuted, Err: errOpen}
	}
	return nil, err
}

// answered says that Redis did, so that a client of several nodes knows them.
func (d *door) answered() {
	if d.nodeOf != nil && !d.known.Load() {
		d.known.Store(true)
	}
}

// isCallers says that an error of a Runner is the caller's own context's.
func isCallers(err error) bool {
	_, ok := errors.AsType[*script.Error](err)
	return !ok
}

// forgotten is after how long without a failure an open breaker tells nothing
// any more: nobody has asked its node, which may have left the cluster.
const forgotten = time.Minute

// open says whether calls to any node are held back.
func (d *door) open() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, n := range d.nodes {
		if n.State() != gobreaker.StateClosed && time.Since(time.Unix(0, n.failed.Load())) < forgotten {
			return true
		}
	}
	return false
}
