package background

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// PanicError is the error of a call during which a client or a hook of it panicked.
type PanicError struct{ value any }

func (p *PanicError) Error() string {
	return fmt.Sprintf("the client, or a hook of it, panicked: %v", p.value)
}

// Unwrap returns the value of the panic if it was an error, and otherwise nil.
func (p *PanicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// IsPanic reports whether a call ended because a hook or the client panicked. That says
// nothing about the server.
func IsPanic(err error) bool {
	_, is := errors.AsType[*PanicError](err)
	return is
}

// Recover turns a panic into a [*PanicError] and logs it. It must be deferred.
func Recover(into *error) {
	if value := recover(); value != nil {
		*into = &PanicError{value}
		logPanic(value)
	}
}

// Process makes a client process a command. If that panics, the error is a [*PanicError].
func Process(ctx context.Context, by interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}, cmd redis.Cmder,
) (err error) {
	defer Recover(&err)
	return by.Process(ctx, cmd)
}

// logPause is the least time between two log lines about panics: a hook may panic in each
// call.
const logPause = int64(time.Minute)

var (
	began  = time.Now()
	logged atomic.Int64 // when, since began; 0 means never
)

// logPanic logs where a panic happened. It does not log its value, which may have a key.
func logPanic(value any) {
	now, before := int64(time.Since(began))+1, logged.Load()
	if before != 0 && now-before < logPause || !logged.CompareAndSwap(before, now) {
		return
	}
	Log(nil, slog.LevelError, "neap: a hook of the Redis client panicked, or the client or neap did; further panics within a minute are not logged",
		"type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
}
