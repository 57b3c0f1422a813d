package lock

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/token"
)

// mostPasses is how often in a row a lock goes on to the next in line without
// being free in between: those of other processes who only ask again after a
// while find it free at times.
const mostPasses = 7

// gift is a lock that a release had granted to whoever is first in line then.
type gift struct {
	hold  any
	fence int64
	asked time.Time
	last  uint64 // who may have it
}

// pass ends the hold and has the first in line hold the lock next, in one
// question. Where Redis knows of somebody else who waits, it only ends the hold.
func (l *Lock) pass(ctx context.Context, last uint64) (n int64, doubted bool, err error) {
	s := l.of
	heir := bid{key: l.key, hold: token.New()}
	n, asked, in, err := s.ask(ctx, releaseScript, l.key, l.hold, l.fence, heir.hold, s.ttl, s.keep)
	if n > 1 {
		if g := (gift{heir.hold, n, asked, last}); !s.lines.give(l.key, g) {
			s.decline(ctx, l.key, g)
		}
		return 1, false, nil
	}
	s.lines.free(l.key, l.line)
	if err != nil && in.Calls > 0 {
		once := ask.Doubt{Last: in.Last, Calls: 1} // the hold that it takes to grant it goes with it
		s.takeBack(once, false, heir.ending(s, 0, failed))
	}
	return n, in.Calls > 0, err
}

// late is for a gift that comes when its waiter has done waiting: it is welcome
// where the wait was in vain, unless nobody wants it any more.
func (s *shared) late(ctx context.Context, b *bid, g gift, held *Lock, err error) (*Lock, error) {
	if held == nil && ctx.Err() == nil {
		return s.accept(ctx, b, g)
	}
	s.decline(endless(ctx), b.key, g)
	return held, err
}

// decline releases a gift in the background, for whoever is in line by then.
func (s *shared) decline(ctx context.Context, key string, g gift) {
	s.store.Pending().Add(1)
	go func() {
		defer s.store.Pending().Add(-1)
		if held, err := s.accept(ctx, &bid{key: key}, g); err == nil {
			_ = held.Release(ctx)
		}
	}()
}

// accept makes a lock of a gift. What the bid has asked for itself may yet be
// granted, and is looked for.
func (s *shared) accept(ctx context.Context, b *bid, g gift) (*Lock, error) {
	if b.doubt.Calls > 0 {
		s.takeBack(b.doubt, false, b.ending(s, 0, failed))
		b.doubt = ask.Doubt{}
	}
	held := &Lock{of: s, bid: bid{key: b.key, owner: g.hold, hold: g.hold}, fence: g.fence, parent: ctx, given: true}
	if !held.begin(g.asked, s.lasts) {
		s.lines.free(b.key, "")
		_ = held.Release(ctx)
		return nil, ErrExpired
	}
	return held, nil
}
