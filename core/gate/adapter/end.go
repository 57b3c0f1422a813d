package adapter

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/internal/background"
)

// End is the end of a response that goes on when the handlers have returned, because the
// server writes its body then or hands the connection over. The gates of the request are
// left when the end is reached. The zero End is not reached, and no gate waits for it.
// Several goroutines may use an End.
type End struct {
	mu      sync.Mutex
	left    []left // inner gates first
	reached bool
}

type left struct {
	leave func(*gate.Reply)
	reply *gate.Reply
}

// Leave has leave called with reply when the end is reached. Gates further in must be
// added first, and are left first. Leave returns false if the end has been reached: then
// the adapter calls leave itself.
//
// leave may run on any goroutine, and after the framework has used the request's objects
// for other requests. If it panics, the panic is logged, because nothing would recover
// it, and the other gates are left.
func (e *End) Leave(leave func(*gate.Reply), reply *gate.Reply) (waits bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.reached {
		e.left = append(e.left, left{leave, reply})
	}
	return !e.reached
}

// Reached reports whether the end has been reached.
func (e *End) Reached() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reached
}

// errPanicked breaks a response off.
var errPanicked = errors.New("neap: a gate panicked when the response had ended")

// Reach has the gates left. Further calls do nothing, but wait for the first. If broken is
// true, the gates get nil instead of their replies: the response broke off because its
// body could not be read. Reach returns an error if a gate panics.
func (e *End) Reach(broken bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reached = true
	return e.leave(broken)
}

// leave has the other gates left even if one ends the goroutine.
func (e *End) leave(broken bool) (err error) {
	if len(e.left) == 0 {
		return nil
	}
	l := e.left[0]
	e.left = e.left[1:]
	if broken {
		l.reply = nil
	}
	defer func() {
		if others := e.leave(broken); others != nil {
			err = others
		}
	}()
	if !l.returns() {
		return errPanicked
	}
	return nil
}

func (l left) returns() (returned bool) {
	defer func() {
		if !returned {
			logPanic(recover())
		}
	}()
	l.leave(l.reply)
	return true
}

// logPanic does not log the value, which may have a key.
func logPanic(value any) {
	background.Log(nil, slog.LevelError, "neap: a gate panicked when a response had ended",
		"type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
}

// Watch has the end reached, as broken, when the garbage collector finds this. It returns
// this: what tells of the end, because the server reads it, closes it or calls it. A
// server may drop a request and do none of these. Without Watch, what the gates hold
// would then be held for ever. Nothing that e refers to may refer to this.
//
// All cleanups of the process share a few goroutines, so gates, which may ask Redis, are
// left on another.
func Watch[T any](this *T, e *End) *T {
	runtime.AddCleanup(this, func(e *End) { background.Go(func() { _ = e.Reach(true) }) }, e)
	return this
}
