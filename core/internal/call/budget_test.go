package call

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/wire"
)

// TestABudgetBeginsWhenTheCallerAsked, if the caller sets Asked.
func TestABudgetBeginsWhenTheCallerAsked(t *testing.T) {
	t.Parallel()
	asked := time.Now().Add(-time.Hour)
	var b budget
	b.begin(t.Context(), asked, time.Minute)
	if got, _ := b.Deadline(); !got.Equal(asked.Add(time.Minute)) {
		t.Errorf("with Asked: got the deadline %v, want a minute after %v", got, asked)
	}
	b.begin(t.Context(), time.Time{}, time.Minute)
	if got, _ := b.Deadline(); time.Until(got) <= 0 {
		t.Errorf("without Asked: got the deadline %v, want one in the future", got)
	}
}

// TestACallEndsAfterItsCallerAsked, even if it is sent later.
func TestACallEndsAfterItsCallerAsked(t *testing.T) {
	t.Parallel()
	client, err := NewClient(neverAnswers{})
	if err != nil {
		t.Fatal(err)
	}
	c := one(t)
	c.Asked = time.Now().Add(-10 * time.Second)
	if err := client.Do(t.Context(), c, 10*time.Second, nil); !errors.Is(err, wire.ErrNotExecuted) || !errors.Is(err, errUnsent) {
		t.Errorf("a call that was asked for long ago: got %v, want at once that it was not sent within the budget", err)
	}
}

// TestAColdClusterClientEndsWithTheBudget: before its first call, it asks a node for its
// commands, and waits for up to 5 s whatever the deadline is.
func TestAColdClusterClientEndsWithTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			ContextTimeoutEnabled: true,
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: "192.0.2.1:6379"}}}}, nil
			},
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		client, err := NewClient(rdb)
		if err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		if err := client.Do(t.Context(), one(t), 200*time.Millisecond, nil); !errors.Is(err, wire.ErrNotExecuted) {
			t.Errorf("a call to a server that does not answer: got %v, want that it was not executed", err)
		}
		if took := time.Since(asked); took > 200*time.Millisecond {
			t.Errorf("the call took %v, want its budget of 200ms", took)
		}
		_ = rdb.Close()
		time.Sleep(time.Minute) // until the client's own goroutines have ended
	})
}

// TestAnAnswerWarmsAClusterClient: from then on, callers call it on their own goroutines.
func TestAnAnswerWarmsAClusterClient(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	rdb.AddHook(answers{})
	client, err := NewClient(rdb)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), one(t), time.Minute, nil); err != nil || client.cold.Load() {
		t.Errorf("after an answer: got %v, cold %t, want it warm", err, client.cold.Load())
	}
}

// answers is a hook that answers by itself.
type answers struct{ redis.Hook }

func (answers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (answers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (answers) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.(*wire.Command).SetVal(int64(7))
		return nil
	}
}

// neverAnswers is a client that waits for the end of the context.
type neverAnswers struct{}

func (neverAnswers) Process(ctx context.Context, cmd redis.Cmder) error {
	<-ctx.Done()
	cmd.SetErr(ctx.Err())
	return ctx.Err()
}
