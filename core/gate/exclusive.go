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
	// Wait is how long a request waits for the lock before it is refused: a millisecond
	// to 24 h. With 0 it is refused immediately. The requests of one process are served
	// in order.
	Wait time.Duration
	// Render makes the answer to a request that may not run, as Render of
	// [RateLimitOptions] does.
	Render func(Denial) Reply
	// OnError is told of each request that is answered with a 500 or 503, as OnError of
	// [RateLimitOptions] is. It is also told
	//
	//   - if the lock was lost before the handler had returned (lock.ErrExpired,
	//     lock.ErrTakenByOther, lock.ErrLost), so that another request may have run at
	//     the same time,
	//   - if Redis did not confirm the release, so that it is unknown whether the lock
	//     was held to the end.
	//
	// In these two cases the handler has run, and the Request has only its context,
	// method, host, path, query, route and peer.
	OnError func(Request, error)
}

// Exclusive returns a gate that lets one request of a subject run at a time, in all
// processes that share the locker's name and Redis. It answers
//
//   - 409 with Retry-After 1 if another request runs; with Wait, if it still runs after
//     the wait,
//   - 400 to 499 if the request has no usable key,
//   - 503 if Redis could not answer, or if the request's context ended,
//   - 500 if the key is wired wrongly or fails.
//
// The handler's context is that of the lock: lock.FromContext finds the lock in it, with
// its fence. The context ends when the lock is lost or reaches MaxHold. It also ends with
// the request's own context, when the client goes away. Fiber, and by default Hertz, do
// not report that, so there the handler runs on.
//
// The end of the context does not end the handler. The lock is held until the handler has
// returned or panicked, and it is renewed until then unless it was lost. On Fiber and Hertz
// it is also held while the server writes a body that is a stream, and while the function
// of Hijack runs. It is free before the response has ended, unless all of it was flushed
// before.
//
// A handler may release the lock early, which ends its context, too. Let it then answer with
// a body or another status than 200: to the other gates of the request an empty 200 means
// that it gave up.
//
// What a handler leaves behind has no lock: a goroutine, and a connection that was taken
// over and lives on. On Fiber that is also the writer of a stream whose client has gone
// away: it may run on until its next Flush fails.
//
// Exclusive costs a round trip before the handler and one after it, and another for each
// third of the lease that the handler takes.
//
// Two such gates with Wait can wait for each other: if two requests ask for the same two
// subjects in opposite order, both wait until one wait is over. A handler that sends its
// own request through the gate once more, as Gin's HandleContext does, waits for itself.
//
// Exclusive panics at wiring on a nil or zero locker, on a nil key, and on a locker made
// by As: all requests would have one owner and would not exclude each other. Nil options
// are the defaults; options are copied.
func Exclusive(locker *lock.Locker, key Key, opts *ExclusiveOptions) Gate {
	if locker == nil {
		panic("gate.Exclusive: the locker is nil; make one with lock.New")
	}
	locker.Name() // panics on one that nothing made
	if _, named := locker.Owner(); named {
		panic("gate.Exclusive: the locker was made by As, so all requests would have one owner and would not exclude each other; use the locker that lock.New made")
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

// mustWait returns what made makes with this wait. It panics if the wait is out of range.
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
		return g.answers.deny(r, Denial{Kind: KindHeld})
	case err != nil:
		return g.answers.unavailable(r, err, KindUnavailable)
	}
	ctx, ending := watch(held.Context())
	return Pass{Context: ctx, Leave: g.leaving(ending, r, held)}
}

// leaving returns a Leave that releases the lock, whatever became of the handler.
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
