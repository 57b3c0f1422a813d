package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// Locks are the locks of several keys, which [Locker.AcquireAll] got together. They are safe
// for concurrent use. The zero Locks are not usable.
type Locks struct {
	keys   []string // sorted
	locks  []*Lock  // of each key
	parent context.Context

	context func() context.Context
}

// AcquireAll gets the locks of all keys, or of none. It waits for all of them together as
// long as Acquire waits for one. The order of the keys does not matter, and a key may be
// given twice. Two callers never wait for each other, because all wait in the same order. A
// caller that waits holds the locks of the keys before, in the order of their bytes.
//
//	held, err := locker.AcquireAll(ctx, "sku-17", "sku-4")
//	if err != nil {
//		return err
//	}
//	defer held.Release(ctx)
//
// Do not ask for another lock while you hold these, unless all callers ask in that order:
// such callers can wait for each other.
//
// AcquireAll returns what Acquire returns, [ErrKey] if there is no key, and how a lock was
// lost while it waited for another.
//
// If all locks are free, AcquireAll takes some two round trips, however many keys there are,
// and so does Release. For each lock that is held, it waits as Acquire does, and then asks for
// the rest again. Stats count each lock.
func (l *Locker) AcquireAll(ctx context.Context, keys ...string) (*Locks, error) {
	misuse.Context(ctx)
	switch {
	case !l.made():
		return nil, errLocker
	case len(keys) == 0 || slices.Contains(keys, ""):
		return nil, ErrKey
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	all := &Locks{keys: keys, locks: make([]*Lock, len(keys)), parent: ctx}
	all.context = sync.OnceValue(all.newContext)
	kept := false
	defer func() { // also if a hook of the client ends the goroutine
		if !kept {
			all.releaseFrom(ctx, 0)
		}
	}()
	end := time.Now().Add(l.wait)
	for next := 0; next < len(keys); next++ {
		denied, err := all.tryFrom(ctx, l, next)
		if err == nil && denied == len(keys) {
			break
		}
		if err == nil {
			// What is waited for comes before what is held: otherwise two callers could wait
			// for each other.
			all.releaseFrom(ctx, denied+1)
			rest := *l
			rest.wait = max(time.Until(end), time.Millisecond)
			all.locks[denied], err = rest.Acquire(ctx, keys[denied])
			next = denied
		}
		if err != nil {
			return nil, err
		}
	}
	if err := all.Err(); err != nil {
		return nil, err
	}
	kept = true
	return all, nil
}

// DoAll runs fn while it holds the locks of all keys. It waits for them as AcquireAll does.
// fn gets the [Locks.Context], which ends when one of the locks is lost, and the locks, for
// their fences.
//
// DoAll returns AcquireAll's error if fn did not run. Otherwise it returns fn's error, joined
// with each loss of a lock before fn returned. If fn panics, DoAll releases the locks, and
// the panic propagates.
func (l *Locker) DoAll(ctx context.Context, keys []string, fn func(ctx context.Context, held *Locks) error) (err error) {
	if fn == nil {
		return errFn
	}
	held, err := l.AcquireAll(ctx, keys...)
	if err != nil {
		return err
	}
	defer func() {
		for _, lost := range held.release(ctx, 0) {
			if isLoss(lost) {
				err = errors.Join(err, lost)
			}
		}
	}()
	return fn(held.Context(), held)
}

// tryFrom asks once for each lock from an index on, all at the same time. It returns the
// index of the first that another holder has, or the number of keys. It returns an error if
// a call failed.
func (ls *Locks) tryFrom(ctx context.Context, l *Locker, from int) (denied int, err error) {
	errs := make([]error, len(ls.keys))
	eachAtOnce(from, len(ls.keys), func(i int) {
		errs[i] = errAskEnded
		b, err := l.bid(ctx, ls.keys[i])
		if err != nil {
			errs[i] = err
			return
		}
		var held *Lock
		if !l.queues.waits(b.key, b.queue) { // or else those that wait come first
			held, _, err = l.attempt(ctx, b, "")
		}
		if held == nil && err == nil {
			err = ErrHeld
		}
		if err != ErrHeld || b.doubt.Calls > 0 { // what is held is asked for again, so it does not count yet
			held, err = l.finish(ctx, b, held, err)
		}
		ls.locks[i], errs[i] = held, err
	})
	denied = len(ls.keys)
	for i := len(errs) - 1; i >= from; i-- {
		switch {
		case errors.Is(errs[i], ErrHeld):
			denied = i
		case errs[i] != nil:
			err = errs[i]
		}
	}
	return denied, err
}

// eachAtOnce calls f with each number, all at the same time and on goroutines of their own,
// which a hook of the client may end.
func eachAtOnce(from, to int, f func(i int)) {
	var calls []<-chan error
	for i := from; i < to; i++ {
		calls = append(calls, background.Start(func() error {
			f(i)
			return nil
		}))
	}
	for _, one := range calls {
		<-one //nolint:errcheck // f notes how its call ended
	}
}

// errAskEnded is the error of a call for a lock that did not return.
var errAskEnded error = &script.Error{Script: acquireScript.Name(), Class: script.ErrMaybeExecuted, Err: background.ErrEnded}

// releaseFrom gives back the locks from an index on.
func (ls *Locks) releaseFrom(ctx context.Context, from int) {
	ls.release(ctx, from)
	clear(ls.locks[from:])
}

// release releases the locks from an index on, and returns how each release ended.
func (ls *Locks) release(ctx context.Context, from int) []error {
	errs := make([]error, len(ls.locks))
	eachAtOnce(from, len(ls.locks), func(i int) {
		if ls.locks[i] != nil {
			errs[i] = errEnded
			errs[i] = ls.locks[i].Release(ctx)
		}
	})
	return errs
}

func (ls *Locks) made() bool { return ls != nil && ls.context != nil }

// Fence returns the fence of a key's lock, as [Lock.Fence] does, or 0 for a key that was not
// asked for. It sends nothing.
func (ls *Locks) Fence(key string) int64 {
	misuse.Made(ls.made(), errLocks)
	if i, found := slices.BinarySearch(ls.keys, key); found {
		return ls.locks[i].Fence()
	}
	return 0
}

// Err returns nil while all locks are held. Otherwise it returns what [Lock.Err] returns of
// the first that is not. It sends nothing.
func (ls *Locks) Err() error {
	if !ls.made() {
		return errLocks
	}
	for _, one := range ls.locks {
		if err := one.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Context returns a child of the context that was passed to AcquireAll. It ends when one of
// the locks is lost or they are released, and its cause is the Err of that lock.
// [FromContext] does not find these locks.
func (ls *Locks) Context() context.Context {
	misuse.Made(ls.made(), errLocks)
	return ls.context()
}

func (ls *Locks) newContext() context.Context {
	ctx, cancel := context.WithCancelCause(ls.parent)
	ends := func(of context.Context) func() { return func() { cancel(context.Cause(of)) } }
	for _, one := range ls.locks {
		background.OnDone(one.Context(), ends(one.Context()))
	}
	return ctx
}

// Release gives all locks back and ends their Context. It is like [Lock.Release], and joins
// what that returns for each. It takes some two round trips.
func (ls *Locks) Release(ctx context.Context) error {
	if !ls.made() {
		return errLocks
	}
	misuse.Context(ctx)
	return errors.Join(ls.release(ctx, 0)...)
}
