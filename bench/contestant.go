package main

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/store"
)

// kind says where a contestant comes from.
type kind string

const (
	floor    kind = "floor" // the least that there is to do
	ours     kind = "neap"
	peer     kind = "peer"
	tutorial kind = "tutorial"
)

// contestant is a row of the tables, and how it is opened: as a limiter, a locker or
// a guard, by the report that it is for.
type contestant struct {
	name   string
	what   string // a line about it
	kind   kind
	module string // of a peer, for its version
	group  string // those that answer the same question: of limiters, the algorithm
	client clientKind

	limiter func(context.Context, *env, workload) (take, error)
	locker  func(context.Context, *env) (acquire, error)
	guard   func(context.Context, *env) (*guard, error)

	// variantOf is the limiter that differs only in its client. What a limiter sends
	// and keeps is found out once, of that one.
	variantOf string
	// minGoroutines is the least number of goroutines with which a contestant takes part.
	minGoroutines int
	// only is the one answer that a contestant is asked for; empty if it is asked for all.
	only way
	// refills marks a bucket that is too fast to be found empty by a second request.
	// It is not asked to deny.
	refills bool
	// middleware stands before the handler of a guard over HTTP.
	middleware middleware
}

// versioned names a module and the version that this program was built with.
func versioned(module string) string {
	version := ""
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range build.Deps {
			if dep.Path == module {
				version = dep.Version
			}
		}
	}
	return strings.TrimPrefix(module, "github.com/") + " " + version
}

func namesOf(all []contestant) []string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	return names
}

// clientKind is how a contestant's go-redis client sends its commands.
type clientKind string

const (
	plain     clientKind = "" // one at a time, and a deadline holds
	untimed   clientKind = "without ContextTimeoutEnabled"
	pipelined clientKind = "AutoPipeline"
	unqueued  clientKind = "direct" // one at a time by neap too
)

// scope closes what was opened in it, the last first.
type scope struct{ closers []func() error }

func (s *scope) onClose(f func() error) { s.closers = append(s.closers, f) }

func (s *scope) ends(f func()) { s.onClose(func() error { f(); return nil }) }

// close is to be deferred. It adds what fails to the error of the function.
func (s *scope) close(err *error) {
	for _, f := range slices.Backward(s.closers) {
		*err = errors.Join(*err, f())
	}
}

// env is where a contestant works: a server, a database of its own there, and a
// client. What the contestant opens besides ends with the scope.
type env struct {
	*scope
	addr  string
	db    int
	rdb   redis.UniversalClient
	queue store.QueueMode // of neap
}

// env opens no connection before the first command.
func (s *server) env(opened *scope, kind clientKind, db int) (*env, error) {
	rdb := redis.NewClient(&redis.Options{
		Addr: s.addr, DB: db, PoolSize: conns(), ContextTimeoutEnabled: kind != untimed,
	})
	opened.onClose(rdb.Close)
	switch kind {
	case plain, untimed:
		return &env{opened, s.addr, db, rdb, store.Queued}, nil
	case unqueued:
		return &env{opened, s.addr, db, rdb, store.Direct}, nil
	case pipelined:
	}
	// It is set up for the calls of many goroutines. With one batch
	// under way at a time, go-redis' default, the client and Redis wait in turn.
	pipe, err := rdb.AsyncAutoPipelineWithOptions(&redis.AutoPipelineOptions{
		MaxBatchSize: 32, MaxConcurrentBatches: 4, Unordered: true,
	})
	if err != nil {
		return nil, err
	}
	opened.onClose(pipe.Close)
	return &env{opened, s.addr, db, pipe, store.Direct}, nil
}

// conns is how many connections each contestant may have: go-redis' default.
func conns() int { return 10 * runtime.GOMAXPROCS(0) }

// empty removes all that the contestant keeps in Redis.
func (e *env) empty(ctx context.Context) error { return e.rdb.FlushDB(ctx).Err() }

// instances opens so many of a contestant on one database, calls f with them and the
// last one's env, and closes them.
func instances[T any](
	s *server, c contestant, db, n int, open func(*env) (T, error), f func(*env, []T) error,
) (err error) {
	var opened scope
	defer opened.close(&err)
	var e *env
	all := make([]T, n)
	for i := range all {
		if e, err = s.env(&opened, c.client, db); err != nil {
			return err
		}
		if all[i], err = open(e); err != nil {
			return err
		}
	}
	return f(e, all)
}
