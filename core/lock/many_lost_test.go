package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// mute is a client whose replies never arrive. Before back is set, the server carries out
// its acquires, and nothing else reaches the server.
type mute struct {
	redis.UniversalClient
	back atomic.Bool
}

func (m *mute) Process(ctx context.Context, cmd redis.Cmder) error {
	if m.back.Load() {
		return m.UniversalClient.Process(ctx, cmd)
	}
	if args := redistest.Write(cmd); len(args) > 1 && scriptNames[args[1]] == "acquire" {
		again := redis.NewCmd(context.Background(), args...)
		if err := m.UniversalClient.Process(context.Background(), again); err != nil {
			cmd.SetErr(err)
			return err
		}
	}
	<-ctx.Done()
	cmd.SetErr(ctx.Err())
	return ctx.Err()
}

// TestManyLostTriesAreAllTakenBack loses the replies of many grants before any of them
// can be taken back. When the server can be reached again, each lock is free long before
// its lease ends.
func TestManyLostTriesAreAllTakenBack(t *testing.T) {
	t.Parallel()
	const many, callers, patience = 2500, 50, 50 * time.Millisecond
	srv := redistest.Standalone(t)
	prefix := srv.Prefix(t)
	rdb := &mute{UniversalClient: srv.Client(t)}
	l := locker(t, rdb, prefix, &lock.Options{Lease: time.Hour, Budget: 5 * time.Second})
	other := locker(t, srv.Client(t), prefix, &lock.Options{Budget: 5 * time.Second})
	err := other.Warm(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for j := i; j < many; j += callers {
				// The callers give up by themselves, because that opens no breaker. An
				// open breaker would keep the others from asking.
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				held, err := l.Try(ctx, fmt.Sprint(j))
				cancel()
				if held != nil || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Try of the lock %d, whose reply is lost: got %v, %v, want no lock and DeadlineExceeded",
						j, held, err)
				}
			}
		})
	}
	all.Wait()
	// If the machine stands still for as long as a caller waits, that caller asks
	// nothing.
	if n := l.Stats(); n.Undoing < many/2 || n.Lapsing != 0 {
		t.Errorf("got %d grants looked for and %d left to lapse, want most of %d and 0", n.Undoing, n.Lapsing, many)
	}
	rdb.back.Store(true)
	for j := range many {
		var held *lock.Lock
		redistest.Await(t, time.Minute, fmt.Sprintf("the lock %d to be free", j), func() (free bool) {
			held, err = other.Try(t.Context(), fmt.Sprint(j))
			return err == nil
		})
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("the release of the lock %d: got %v, want no error", j, err)
		}
	}
}
