package script

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestEachAttemptWaitsForTheTransport: the transport decides how long a call waits, so
// the answer to the first attempt may come after the deadline. The same is true of the
// second attempt.
func TestEachAttemptWaitsForTheTransport(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	r, err := NewRunner(rdb, nil)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		const budget = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		attempts := 0
		by := func(attempt context.Context, cmd Command) error {
			attempts++
			if attempt.Done() != ctx.Done() {
				t.Errorf("attempt %d: got another Done, want the caller's", attempts)
			}
			cmd.(*command).begin()
			if attempts == 1 {
				time.Sleep(2 * budget)
				cmd.SetErr(noScriptError{})
				return nil
			}
			cmd.(*command).SetVal(int64(7))
			return nil
		}
		c := &Call{runner: r, script: New("one.lua", "return 7"), keys: []string{"k"}}
		if err := c.SendBy(ctx, budget, by); err != nil || c.Reply() != int64(7) || attempts != 2 {
			t.Errorf("the call: got %v and %v after %d attempts, want 7 after 2", c.reply, err, attempts)
		}
	})
}

type noScriptError struct{}

func (noScriptError) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }
func (noScriptError) RedisError()   {}
