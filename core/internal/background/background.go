// Package background starts the goroutines and the timers of the library, and contains
// panics. Code of users runs below the library: hooks and dialers of a client, the client
// itself, and observers. On a goroutine of the library, a panic of such code would end the
// process.
//
// Goroutines that go-redis starts are beyond its reach: a dial hook that panics there ends
// the process.
package background

import (
	"context"
	"errors"
	"time"
)

// ErrEnded is the error of work whose goroutine was ended.
var ErrEnded = errors.New("a hook of the client ended its goroutine (runtime.Goexit)")

// Go runs f on a goroutine of its own. If f panics, f ends and the panic is logged.
func Go(f func()) {
	go contained(f)
}

// AfterFunc is [time.AfterFunc] for an f that may panic.
func AfterFunc(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { contained(f) })
}

// OnDone is [context.AfterFunc] for an f that may panic.
func OnDone(ctx context.Context, f func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() { contained(f) })
}

// Start runs f on a goroutine of its own. The channel gets the error of f, or an error if f
// panics or ends its goroutine. Nobody has to read it.
func Start(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := ErrEnded
		defer func() { done <- err }()
		defer Recover(&err)
		err = f()
	}()
	return done
}

// Try is [Start], and waits for the error. So the goroutine of the caller goes on if f ends
// its own.
func Try(f func() error) error { return <-Start(f) }

func contained(f func()) {
	var err error
	defer Recover(&err)
	f()
}
