package call

import (
	"context"
	"encoding"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/queue"
	"github.com/neap-go/neap/core/internal/wire"
)

// TestEachAttemptWaitsForTheTransport: the transport decides how long a call waits, so
// the answer to the first attempt may come after the deadline. The same is true of the
// second attempt.
func TestEachAttemptWaitsForTheTransport(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	client, err := NewClient(rdb)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		const budget = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		attempts := 0
		by := transport(func(attempt context.Context, cmd *wire.Command) error {
			attempts++
			if attempt.Done() != ctx.Done() {
				t.Errorf("attempt %d: got another Done, want the caller's", attempts)
			}
			write(t, cmd)
			if attempts == 1 {
				time.Sleep(2 * budget)
				cmd.SetErr(noScriptError{})
				return nil
			}
			cmd.SetVal(int64(7))
			return nil
		})
		c := one(t)
		if err := client.Do(ctx, c, budget, by); err != nil || c.Reply() != int64(7) || attempts != 2 {
			t.Errorf("the call: got %v and %v after %d attempts, want 7 after 2", c.reply, err, attempts)
		}
	})
}

// TestAShortCallEndsAsItsCallersContext, also before that context has ended, if its
// transport gives it up or has no room for it. What Redis or the network refuses at once is
// their failure, however much time the caller has.
func TestAShortCallEndsAsItsCallersContext(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	client, err := NewClient(rdb)
	if err != nil {
		t.Fatal(err)
	}
	const budget = time.Second
	full, refused := errors.New("full"), &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, c := range map[string]struct {
		gives error // of the transport
		ends  error // of the command
		short error // with less time than the budget
		long  error
	}{
		"given up":        {context.DeadlineExceeded, nil, context.DeadlineExceeded, errUnsent},
		"no room":         {full, nil, context.DeadlineExceeded, full},
		"no connection":   {nil, redis.ErrPoolTimeout, context.DeadlineExceeded, redis.ErrPoolTimeout},
		"refused":         {nil, refused, refused, refused},
		"refused by name": {nil, loadingError{}, loadingError{}, loadingError{}},
	} {
		for _, own := range []time.Duration{budget - time.Nanosecond, budget, 2 * budget} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), own)
				defer cancel()
				by := transport(func(ctx context.Context, cmd *wire.Command) error {
					deadline, _ := ctx.Deadline()
					if short := deadline.Before(cmd.Due()); short != (own < budget) {
						t.Errorf("%s, with %v of a budget of %v: got short %v", name, own, budget, short)
					}
					time.Sleep(min(own, budget) - time.Microsecond) // too late for another attempt
					if c.ends != nil {
						cmd.SetErr(c.ends)
					}
					return c.gives
				})
				want := c.long
				if own < budget {
					want = c.short
				}
				err := client.Do(ctx, one(t), budget, by)
				if _, is := errors.AsType[*failure](err); !errors.Is(err, want) || is != (want != context.DeadlineExceeded) {
					t.Errorf("%s, with %v of a budget of %v: got %v, want %v", name, own, budget, err, want)
				}
				if ctx.Err() != nil {
					t.Errorf("%s: got a context that has ended, want one that has not: this test is about it", name)
				}
			})
		}
	}
}

// transport is a Transport.
type transport func(ctx context.Context, cmd *wire.Command) error

func (by transport) Do(ctx context.Context, cmd queue.Call) error {
	return by(ctx, cmd.(*wire.Command))
}

// failure is the error of a call.
type failure struct{ class, cause error }

func (f *failure) Error() string   { return f.class.Error() + ": " + f.cause.Error() }
func (f *failure) Unwrap() []error { return []error{f.class, f.cause} }

// one returns a call of a script.
func one(t *testing.T) *Call {
	t.Helper()
	s := wire.New("one.lua", "return 7", func(_ string, class, cause error) error { return &failure{class, cause} })
	c := new(Call)
	if err := c.Set(s, []string{"k"}, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// write writes a command to nowhere.
func write(t *testing.T, cmd *wire.Command) {
	t.Helper()
	if _, err := cmd.Args()[1].(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		t.Fatal(err)
	}
}

type loadingError struct{}

func (loadingError) Error() string { return "LOADING Redis is loading the dataset in memory" }
func (loadingError) RedisError()   {}

type noScriptError struct{}

func (noScriptError) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }
func (noScriptError) RedisError()   {}
