package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// PausedServer is a server that is paused while calls are made. It runs them when it
// resumes, after their callers have given up.
type PausedServer struct {
	*redistest.Server
	Budget time.Duration // of what makes the calls

	want  error
	ctx   func(context.Context) (context.Context, context.CancelFunc)
	since redistest.Since
}

// EachPausedServer runs a test twice, each on a server of its own: in one the calls
// end by their budget, in the other by the context of their caller.
func EachPausedServer(t *testing.T, run func(t *testing.T, s *PausedServer)) {
	t.Helper()
	const short = 2 * time.Second
	for name, s := range map[string]PausedServer{
		"budget":                 {Budget: short, want: script.ErrMaybeExecuted, ctx: context.WithCancel},
		"canceled by the caller": {Budget: 5 * time.Second, want: context.DeadlineExceeded, ctx: brief(short)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.Server = redistest.NewStandalone(t)
			s.since = redistest.NewSince(t)
			run(t, &s)
		})
	}
}

func brief(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

// Connected is a client that has connections for many calls at once: a call that has
// to connect first is not sent in time, and so never. Each call is sent by itself: what waits behind others is
// not sent either.
func (s *PausedServer) Connected(t *testing.T) redistest.Alone {
	t.Helper()
	const many = 20
	rdb := s.Client(t, func(o *redis.Options) { o.PoolSize = 50 })
	for range many {
		c := rdb.Conn()
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		defer c.Close() // which gives it back to the pool
	}
	return redistest.Alone{UniversalClient: rdb}
}

// Fail makes the calls, all at once, and has the server run on when each has failed
// as it should and meanwhile has returned.
func (s *PausedServer) Fail(t *testing.T, calls map[string]func(context.Context) error, meanwhile func()) {
	t.Helper()
	s.Pause(t)
	ctx, cancel := s.ctx(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for name, call := range calls {
		all.Go(func() {
			if err := call(ctx); !errors.Is(err, s.want) {
				t.Errorf("%s: got %v, want %v", name, err, s.want)
			}
		})
	}
	all.Wait()
	meanwhile()
	s.Resume(t)
	s.since.Back()
}

// Undone expects that the server has not run on for more than two seconds.
func (s *PausedServer) Undone(t *testing.T) {
	t.Helper()
	s.since.Undone(t)
}
