package lock

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/token"
)

// handsOn is for how long a process may hand a lock on among its own callers. After that
// the lock becomes free, so that processes which may not subscribe, and ask only now and
// then, can get it.
const handsOn = 5 * time.Millisecond

// handoff is a hold that a release has granted to the first caller in the queue of its
// process.
type handoff struct {
	hold  any
	fence int64
	asked time.Time
	last  uint64 // the number of the last waiter that may get it
}

// handOff ends the hold and grants the lock to the first in the queue, in one call. If
// Redis knows of a waiter in another process, the call only ends the hold.
func (l *Lock) handOff(ctx context.Context, last uint64) (n int64, doubted bool, err error) {
	s := l.of
	successor := bid{key: l.key, hold: token.New()}
	handed := false
	defer func() {
		if !handed { // also if a hook of the client ends the goroutine
			s.queues.free(l.key, l.queue)
		}
	}()
	n, asked, in, err := s.ask(ctx, releaseScript, l.key, l.hold, l.fence, successor.hold, s.ttl, s.keep)
	if n > 1 {
		handed = true
		if h := (handoff{successor.hold, n, asked, last}); !s.queues.hand(l.key, h) {
			s.decline(ctx, l.key, h)
		}
		return 1, false, nil
	}
	if err != nil && in.Calls > 0 {
		once := ask.Doubt{Last: in.Last, Calls: 1} // a second call would find no hold to hand off
		s.takeBack(once, false, successor.ending(s, 0, failed))
	}
	return n, in.Calls > 0, err
}

// late is called with a lock that was handed to a waiter after it stopped waiting. The
// waiter accepts the lock if it got no other and its caller is still there.
func (s *shared) late(ctx context.Context, b *bid, h handoff, held *Lock, err error) (*Lock, error) {
	if held == nil && ctx.Err() == nil {
		return s.accept(ctx, b, h)
	}
	s.decline(endless(ctx), b.key, h)
	return held, err
}

// decline releases a handed lock in the background, so that the current waiters can get
// it.
func (s *shared) decline(ctx context.Context, key string, h handoff) {
	s.asker.Inside.Pending().Add(1)
	background.Go(func() {
		defer s.asker.Inside.Pending().Add(-1)
		if held, err := s.accept(ctx, &bid{key: key}, h); err == nil {
			_ = held.Release(ctx)
		}
	})
}

// accept makes a Lock of a handoff. Redis may still grant what the bid itself has asked
// for, so accept takes that back.
func (s *shared) accept(ctx context.Context, b *bid, h handoff) (*Lock, error) {
	if b.doubt.Calls > 0 {
		was := *b // persist gives the bid another hold
		s.takeBack(b.doubt, false, was.ending(s, 0, failed))
		b.doubt = ask.Doubt{}
	}
	held := &Lock{of: s, bid: bid{key: b.key, owner: h.hold, hold: h.hold}, fence: h.fence, parent: ctx, handed: true}
	if !held.begin(h.asked, s.lasts) {
		s.queues.free(b.key, "")
		_ = held.Release(ctx)
		return nil, ErrExpired
	}
	return held, nil
}
