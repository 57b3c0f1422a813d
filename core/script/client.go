package script

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client is the least that a script needs to run. Every go-redis client has it: Client,
// ClusterClient and Ring, and the AutoPipeliner of the first two, which sends the calls
// of many goroutines together. (A Ring makes no AutoPipeliner.)
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Sender is a [Client] that stands before another client. It decides about each call
// whether it is sent, and how long it may take. A store of package store is one. A
// [Runner] gives each call to the Sender, which sends it through its client.
type Sender interface {
	Client
	// Client returns the client inside.
	Client() Client
	// Budget returns the budget of runners whose options have none. If the Sender has
	// none either, it returns otherwise.
	Budget(otherwise time.Duration) time.Duration
	// Send makes the call once, with Call.Send or Call.SendBy, or not at all. It returns
	// the error of that call, or an [*Error] of class [ErrNotExecuted].
	Send(ctx context.Context, call *Call) error
}

// ErrClient reports a client that cannot be used for decisions. The error that wraps it
// says why.
var ErrClient = errors.New("script: unusable client")

var redisPackage = reflect.TypeFor[redis.Client]().PkgPath()

// check refuses clients that have a Process method but would answer without asking Redis.
func check(rdb Client) error {
	if rdb == nil {
		return fmt.Errorf("%w: rdb is nil: pass a connected go-redis client", ErrClient)
	}
	switch v := reflect.ValueOf(rdb); {
	case v.Kind() != reflect.Pointer:
	case v.IsNil():
		return fmt.Errorf("%w: rdb is a nil %T: pass a connected go-redis client", ErrClient, rdb)
	case v.Type().Elem().PkgPath() == redisPackage && v.Elem().IsZero():
		return fmt.Errorf("%w: rdb is a zero %T: pass a client that redis.NewClient or its like has made", ErrClient, rdb)
	}
	switch rdb.(type) {
	case interface {
		Exec(ctx context.Context) ([]redis.Cmder, error)
	}:
		return fmt.Errorf("%w: rdb is a pipeline (%T), which answers before it has asked: pass the client itself", ErrClient, rdb)
	case *redis.Tx:
		return fmt.Errorf("%w: rdb is a transaction (%T), which lives on one connection: pass the client itself", ErrClient, rdb)
	}
	return nil
}

// honoursDeadlines reports whether the client ends its I/O at the context's deadline. It
// can do so only if it is known.
func honoursDeadlines(rdb Client) (honours, known bool) {
	switch c := rdb.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled, true
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled, true
	case *redis.Ring:
		return c.Options().ContextTimeoutEnabled, true
	}
	return false, false
}

// pipelineOf returns the client if it is an AutoPipeliner whose calls return before they
// have run. For any other client it returns nil.
func pipelineOf(rdb Client) *redis.AutoPipeliner {
	if p, ok := rdb.(*redis.AutoPipeliner); ok && !p.IsBlocking() {
		return p
	}
	return nil
}
