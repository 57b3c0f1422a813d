package gate

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/lock"
)

// ExclusiveOptions are the options of [Exclusive]. Their functions must be safe for
// concurrent use; their panics propagate to the request.
type ExclusiveOptions struct {
	// Skip lets a request pass without a lock, such as a health check.
	Skip func(Request) bool
	// Wait is how long a request waits for the lock before it is refused, up to 24 h;
	// 0 refuses it immediately. The requests of one process are served in order.
	Wait time.Duration
	// Render makes the answer to a request that may not run, as that of
	// [RateLimitOptions] does.
	Render func(Denial) Reply
	// OnError hears of what is answered with a 500 or 503, as that of
	// [RateLimitOptions] does. It also hears when the lock was lost before the
	// handler had returned (lock.ErrExpired, lock.ErrTakenByOther, lock.ErrLost),
	// so that another may have run beside it, and when Redis did not confirm the
	// release: nobody knows then whether it was held to the end. The handler has run by
	// then, and the Request has no more than its context, method, host, path,
	// query, route and peer.
	OnError func(Request, error)
}

// titleHeld has no problem type beside it: none that is registered is about
// requests that exclude each other.
const titleHeld = "Another request for the same thing is running"

// retryHeld is when to come back to a lock that another request has: it is free
// when that has ended, and nobody knows when.
const retryHeld = time.Second

// Exclusive is a gate that lets one request of a subject run at a time, in all
// processes that share the locker's name and Redis. It answers
//
//   - 409 with Retry-After 1 while another runs; with Wait, if it still runs after
//     the wait,
//   - 400 to 499 when the request cannot be keyed,
//   - 503 when Redis could not answer, or when the request's context ended,
//   - 500 when the key is wrongly wired or fails.
//
// The handler's context is that of the lock: lock.FromContext finds the lock in
// it, with its fence, and it ends when the lock is lost or reaches MaxHold. It
// also ends with the request's own, when the client goes away; Fiber does not
// tell of that, so there the handler runs on. What ends the context does not end
// the handler: the lock is held, and renewed unless it was lost, until the
// handler has returned or panicked, and is free before the response has ended
// unless the handler flushed all of it. What a handler leaves behind has no
// lock: a goroutine, a connection that was taken over and lives on, and with
// Fiber a response that is streamed, since its stream runs after the handler has
// returned.
//
// It costs a round trip before the handler and one after it, and another for
// each third of the lease that the handler takes. Two of them with Wait, whose
// subjects two requests ask for in opposite order, wait for each other until a
// wait is over; and a handler that sends its own request through the gate once
// more, as Gin's HandleContext does, waits for itself.
//
// It panics at wiring on a nil or zero locker, a nil key, and a locker made by As, whose
// owner would not exclude himself; nil options are the defaults, and options are
// copied.
func Exclusive(locker *lock.Locker, key Key, opts *ExclusiveOptions) Gate {
	if locker == nil {
		panic("gate.Exclusive: the locker is nil; make one with lock.New")
	}
	locker.Name() // panics on one that nothing made
	if _, named := locker.Owner(); named {
		panic("gate.Exclusive: the locker was made by As, and all requests would be one owner's; use the one that lock.New made")
	}
	mustKey("Exclusive", key)
	g := &exclusive{acquire: locker.Try, key: key}
	if opts != nil {
		if opts.Wait != 0 {
			g.acquire = mustWait("Exclusive", locker.WithWait, opts.Wait).Acquire
		}
		g.skip = opts.Skip
		g.answers = answers{render: opts.Render, onError: opts.OnError}
	}
	return g
}

// mustWait is made with a wait. It panics if that is out of range.
func mustWait[T any](constructor string, made func(time.Duration) (T, error), wait time.Duration) T {
	waiting, err := made(wait)
	if err != nil {
		panic("gate." + constructor + ": " + constructor + "Options.Wait: " + err.Error())
	}
	return waiting
}

type exclusive struct {
	acquire func(ctx context.Context, key string) (*lock.Lock, error)
	key     Key
	skip    func(Request) bool
	answers answers
}

func (g *exclusive) Enter(r Request) Pass {
	if g.skip != nil && g.skip(r) {
		return Pass{}
	}
	subject, err := subject(r, g.key)
	if err != nil {
		return g.answers.refuse(r, err)
	}
	held, err := g.acquire(r.Context(), subject)
	switch {
	case errors.Is(err, lock.ErrHeld):
		return g.answers.deny(r, Denial{Status: 409, Title: titleHeld, RetryAfter: retryHeld})
	case err != nil:
		return g.answers.unavailable(r, err)
	}
	ctx, ending := watch(held.Context())
	return Pass{Context: ctx, Leave: g.leaving(ending, r, held)}
}

// leaving gives the lock back, whatever became of the handler.
func (g *exclusive) leaving(ending *ending, r Request, held *lock.Lock) func(*Reply) {
	ctx, asked := r.Context(), Request(nil)
	if g.answers.onError != nil {
		asked = snapshotOf(r)
	}
	return func(reply *Reply) {
		ending.gaveUp(reply) // tells the gates outside
		if err := held.Release(ctx); err != nil {
			g.answers.tell(asked, err)
		}
	}
}
