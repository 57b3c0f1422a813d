package store

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/queue"
	"github.com/neap-go/neap/internal/redistest"
)

// atOnce is a client that refuses all commands, as a server refuses a probe.
type atOnce struct{}

func (atOnce) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.SetErr(noScript{})
	return cmd.Err()
}

type noScript struct{}

func (noScript) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }
func (noScript) RedisError()   {}

// TestAProbeThatIsAnsweredIsAnswered, also if its goroutine has ended before the answer is
// read.
func TestAProbeThatIsAnsweredIsAnswered(t *testing.T) {
	t.Parallel()
	calls, err := call.NewClient(atOnce{})
	if err != nil {
		t.Fatal(err)
	}
	b := &breaker{calls: calls}
	for range redistest.Ops(500_000) {
		if r := b.ask("k", time.Minute); r != queue.Answered {
			t.Fatalf("a probe that was answered at once: got the result %v, want %v", r, queue.Answered)
		}
	}
}
