package limit

import (
	"context"
	"sync"
	"time"
)

// renewals is how many times a lease is renewed before it would end.
const renewals = 3

// renewSoon is how long to wait at most after a renewal that Redis did not
// answer.
const renewSoon = time.Second

// Slot is the answer to one Acquire. Its Policy is "inflight" and its
// RetryAfter, of a denied one, a second; it has no ResetAfter and no States,
// since nobody knows when those in flight will end.
type Slot struct {
	Decision

	of           *Concurrency
	key, subject string

	mu       sync.Mutex
	token    string // of the lease; empty while Redis knows of none
	released bool
	timer    *time.Timer
}

// Release gives the slot back. It may be called any number of times, at once
// too, and on a nil or denied Slot; only the first does anything. It does not
// end with ctx, of which it takes the values alone, but within the budget.
//
// The error is a [*script.Error] when Redis did not confirm it: the slot is
// then given back in the background, which takes no longer than a lease.
func (s *Slot) Release(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	if s.released || !s.Allowed {
		s.mu.Unlock()
		return nil
	}
	s.released = true
	token := s.token
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()

	s.of.held.remove(s.subject)
	if token == "" {
		return nil
	}
	return s.of.giveBack(context.WithoutCancel(ctx), s.key, token)
}

func (c *Concurrency) giveBack(ctx context.Context, key, token string) error {
	asked := time.Now()
	_, err := c.lease.release(ctx, key, token)
	if err != nil {
		c.takeBack(key, token, asked, true)
	}
	return err
}

// keep renews the lease from now on; without one, it soon asks for one.
func (s *Slot) keep(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
	s.timer = time.AfterFunc(s.pause(token != ""), s.renew)
}

func (s *Slot) pause(answered bool) time.Duration {
	pause := s.of.opts.Lease / renewals
	if !answered {
		pause = min(pause, renewSoon)
	}
	return pause
}

// renew runs on the timer. A renewal extends only what is there, so that one
// that arrives behind a Release changes nothing.
func (s *Slot) renew() {
	s.mu.Lock()
	token, released := s.token, s.released
	s.mu.Unlock()
	if released {
		return
	}
	ctx := context.Background()
	var err error
	if token != "" {
		var there bool
		if there, err = s.of.lease.renew(ctx, s.key, token); err == nil && !there {
			token = ""
		}
	}
	if token == "" {
		token, _, err = s.of.take(ctx, s.key)
	}

	s.mu.Lock()
	late := s.released && token != "" && token != s.token
	if !s.released {
		s.token = token
		s.timer.Reset(s.pause(err == nil))
	}
	s.mu.Unlock()
	if late { // Release knew nothing of this one
		_ = s.of.giveBack(ctx, s.key, token)
	}
}
