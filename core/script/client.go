package script

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client is the least that running a script needs. Every go-redis client has
// it: Client, ClusterClient, Ring, and the AutoPipeliner of both kinds, which
// sends the calls of many goroutines together and which a Ring does not make.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Sender is a [Client] that stands before another and decides about each call
// whether it is sent, and how long it may take: a store of core/store. A
// [Runner] gives each call to the Sender, which sends it through its client.
type Sender interface {
	Client
	// Client is the client inside.
	Client() Client
	// Budget is that of runners whose options have none, or otherwise.
	Budget(otherwise time.Duration) time.Duration
	// Send makes the call by Call.Send or Call.SendBy, once, or not at all. The error is what
	// that returned, or an [*Error] of class [ErrNotExecuted].
	Send(ctx context.Context, call *Call) error
}

// ErrClient is what a client that cannot carry a decision is refused with.
var ErrClient = errors.New("script: unusable client")

var redisPackage = reflect.TypeFor[redis.Client]().PkgPath()

// check refuses what has a Process but would answer without having asked.
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

// honoursDeadlines says whether the client ends its I/O when the context's
// deadline passes. Of a client that is not known the answer is no.
func honoursDeadlines(rdb Client) bool {
	switch c := rdb.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		return c.Options().ContextTimeoutEnabled
	}
	return false
}

// pipelineOf is the client when it is an AutoPipeliner whose calls return
// before they have run; nil of any other.
func pipelineOf(rdb Client) *redis.AutoPipeliner {
	if p, ok := rdb.(*redis.AutoPipeliner); ok && !p.IsBlocking() {
		return p
	}
	return nil
}
