package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
)

// algorithm says which contestants answer the same question.
type algorithm string

const (
	bucket  algorithm = "bucket"
	window  algorithm = "fixed window"
	sliding algorithm = "sliding window"
	history algorithm = "log"
	both    algorithm = "bucket and window"
	nothing algorithm = "none"
)

// kind says who wrote a contestant.
type kind string

const (
	floor    kind = "floor"
	ours     kind = "neap"
	peer     kind = "peer"
	tutorial kind = "tutorial"
)

// Contestant is one way to limit a rate on Redis.
type contestant struct {
	name      string // as the tables have it
	what      string // what it is, in a line
	kind      kind
	algorithm algorithm
	module    string // a peer's, for its version; empty for the others
	// twin is the contestant that differs only in its client. Scripts and
	// answers are told once, of that one.
	twin string
	// crowd leaves it out but where hundreds of goroutines call at once.
	crowd bool
	// refills is a bucket too fast to be found empty by a second request: it
	// is not asked to deny.
	refills bool
	open    func(ctx context.Context, e env, w workload) (*limiter, error)
}

// limiter is what all contestants have in common.
type limiter struct {
	take  func(ctx context.Context, key string) (allowed bool, err error)
	close func() error
}

// env is where a contestant keeps its state: a server, and a database of its
// own there.
type env struct {
	addr string
	db   int
}

// conns is how many connections each contestant may have: go-redis' default.
func conns() int { return 10 * runtime.GOMAXPROCS(0) }

// client is the go-redis client that all are given, but for those that have
// another.
func (e env) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: e.addr, DB: e.db, PoolSize: conns(), ContextTimeoutEnabled: true})
}

// crowded is how docs/operations.md has go-redis send the calls of many
// goroutines together. With one batch under way at a time, go-redis' default,
// the client and Redis wait for each other in turn.
func crowded() *redis.AutoPipelineOptions {
	return &redis.AutoPipelineOptions{MaxBatchSize: 32, MaxConcurrentBatches: 4, Unordered: true}
}

// pipeline is the same client as an AutoPipeline, and what closes both.
func (e env) pipeline() (*redis.AutoPipeliner, func() error, error) {
	rdb := e.client()
	pipe, err := rdb.AsyncAutoPipelineWithOptions(crowded())
	if err != nil {
		return nil, nil, errors.Join(err, rdb.Close())
	}
	return pipe, func() error { return errors.Join(pipe.Close(), rdb.Close()) }, nil
}

// quota is a limit: so many in a window. A bucket holds Limit, and Refill
// come back in each Window.
type quota struct {
	limit, refill int64
	window        time.Duration
}

// workload is what contestants are asked for, each in its own terms.
type workload string

const (
	// ample admits whatever is sent, on one hot key.
	ample workload = "ample"
	// broad admits whatever is sent, on many keys.
	broad workload = "broad"
	// spent admits one request for each key.
	spent workload = "spent"
	// thousand admits 1,000 a day.
	thousand workload = "thousand"
	// few admits 5 a day.
	few workload = "few"
	// usual are limits as services have them.
	usual workload = "usual"
)

func (w workload) quota(a algorithm) quota {
	const day = 24 * time.Hour
	switch w {
	case spent:
		return quota{limit: 1, refill: 1, window: day}
	case thousand:
		return quota{limit: 1000, refill: 1000, window: day}
	case few:
		return quota{limit: 5, refill: 5, window: day}
	case usual:
		switch a {
		case bucket:
			return quota{limit: 20, refill: 10, window: time.Minute}
		case history:
			return quota{limit: 5, window: 10 * time.Minute}
		}
		return quota{limit: 1000, window: time.Hour}
	}
	switch a {
	case bucket:
		return quota{limit: 1e9, refill: 100, window: time.Second}
	case sliding:
		return quota{limit: 1e6, window: time.Second}
	case history:
		// A log keeps every request: of a hot key those of a few milliseconds.
		// One by the callers' clocks denies who lost the processor for as long
		// as the limit takes to fill.
		if w == broad {
			return quota{limit: 1000, window: time.Hour}
		}
		return quota{limit: 10_000, window: 5 * time.Millisecond}
	}
	return quota{limit: 1e9, window: time.Hour}
}

// contestants are all of them; the first is the floor.
func contestants() []contestant {
	all := []contestant{theFloor(), theFloorPipelined()}
	all = append(all, neaps()...)
	all = append(all, peers()...)
	return append(all, tutorials()...)
}
