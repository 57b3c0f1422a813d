package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
)

const (
	workers = 10
	buyers  = 100
	chairs  = 10
	copies  = 5 // of one request
	held    = 400 * time.Millisecond
)

// scenes are what the buttons start: workers that want one lock, one key sent five times, a hundred buyers.
type scenes struct {
	locker *lock.Locker
	guard  *idempotency.Guard
	shop   *stock.Stock
	booths *inflight.Limiter

	mu      sync.Mutex
	seen    seen
	stop    context.CancelFunc // of the workers; nil while they rest
	round   int                // of the key
	selling bool
}

// seen is what the page shows of the scenes.
type seen struct {
	Workers []worker `json:"workers"`
	Copies  []string `json:"copies"` // asked, ran, again or failed
	Charges int64    `json:"charges"`
	Buyers  []string `json:"buyers"` // asked, sold, refused or failed
	Left    int64    `json:"left"`
}

type worker struct {
	State string `json:"state"` // resting, waiting, holding
	Fence int64  `json:"fence"` // of the last time
	Times int    `json:"times"`
}

func newScenes(st *store.Store) (*scenes, error) {
	s := &scenes{seen: seen{Workers: make([]worker, workers), Copies: make([]string, copies), Buyers: make([]string, buyers), Left: chairs}}
	for i := range s.seen.Workers {
		s.seen.Workers[i].State = "resting"
	}
	var errs [4]error
	s.locker, errs[0] = lock.New(st, "printer", &lock.Options{Wait: time.Minute})
	s.guard, errs[1] = idempotency.New(st, "payments", idempotency.Retry{}, nil)
	s.shop, errs[2] = stock.New(st, "shop", nil)
	s.booths, errs[3] = inflight.New(st, "checkout", 20, nil)
	return s, errors.Join(errs[:]...)
}

// look is what the page shows now.
func (s *scenes) look() seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.seen
	all.Workers = append([]worker{}, all.Workers...)
	all.Copies = append([]string{}, all.Copies...)
	all.Buyers = append([]string{}, all.Buyers...)
	return all
}

func (s *scenes) note(change func(*seen)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.seen)
}

// work starts ten workers that take one lock again and again, or ends them.
func (s *scenes) work(start bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case start && s.stop == nil:
		var ctx context.Context
		ctx, s.stop = context.WithCancel(context.Background())
		for i := range workers {
			go s.worker(ctx, i)
		}
	case !start && s.stop != nil:
		s.stop()
		s.stop = nil
	}
}

func (s *scenes) worker(ctx context.Context, i int) {
	set := func(state string) { s.note(func(seen *seen) { seen.Workers[i].State = state }) }
	defer set("resting")
	set("waiting")
	for ctx.Err() == nil {
		err := s.locker.Do(ctx, "printer", func(ctx context.Context) error {
			l, _ := lock.FromContext(ctx)
			s.note(func(seen *seen) {
				w := &seen.Workers[i]
				w.State, w.Fence = "holding", l.Fence()
				w.Times++
			})
			defer set("waiting") // before the next one holds it
			return sleep(ctx, held)
		})
		if err != nil && ctx.Err() == nil {
			_ = sleep(ctx, 200*time.Millisecond) // Redis is stopped, or a release is in doubt
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// repeat sends one key five times at once: a payment that may be charged once.
func (s *scenes) repeat() {
	s.mu.Lock()
	s.round++
	key := fmt.Sprint("payment-", time.Now().UnixNano(), s.round)
	s.seen.Charges = 0
	for i := range s.seen.Copies {
		s.seen.Copies[i] = "asked"
	}
	round := s.round
	s.mu.Unlock()
	for i := range copies {
		go func() {
			var ran atomic.Bool
			_, err := s.guard.Do(context.Background(), key, func(ctx context.Context) ([]byte, error) {
				ran.Store(true)
				s.note(func(seen *seen) {
					if s.round == round {
						seen.Charges++
					}
				})
				return []byte("receipt"), sleep(ctx, time.Second)
			})
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.round != round {
				return
			}
			switch {
			case err != nil:
				s.seen.Copies[i] = "failed"
			case ran.Load():
				s.seen.Copies[i] = "ran"
			default:
				s.seen.Copies[i] = "again"
			}
		}()
	}
}

// sell puts ten chairs on sale, and sends a hundred buyers who want one each. It does nothing while a sale goes on.
func (s *scenes) sell(ctx context.Context) {
	s.mu.Lock()
	if s.selling {
		s.mu.Unlock()
		return
	}
	s.selling = true
	for i := range s.seen.Buyers {
		s.seen.Buyers[i] = "asked"
	}
	s.mu.Unlock()
	defer s.note(func(*seen) { s.selling = false })
	_, _ = s.shop.Forget(ctx, "chair")
	_, _ = s.shop.Open(ctx, "chair", chairs, time.Now().Add(time.Hour))
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() {
			what := s.buy(ctx, fmt.Sprint("buyer-", i))
			s.note(func(seen *seen) { seen.Buyers[i] = what })
		})
		_ = sleep(ctx, 20*time.Millisecond) // so that one can watch
	}
	all.Wait()
	level, err := s.shop.Left(ctx, "chair")
	if err == nil {
		s.note(func(seen *seen) { seen.Left = level.Left })
	}
}

// buy is what one buyer does: reserve, pay, confirm.
func (s *scenes) buy(ctx context.Context, buyer string) (what string) {
	slot, err := s.booths.Try(ctx, "checkout")
	if err != nil || !slot.Allowed {
		return "failed"
	}
	defer slot.Release(ctx)
	r, err := s.shop.Reserve(ctx, "chair", buyer, "1", nil)
	switch {
	case errors.Is(err, stock.ErrSoldOut):
		return "refused"
	case err != nil:
		return "failed"
	}
	_ = sleep(ctx, 150*time.Millisecond)
	if r.Confirm(ctx) != nil {
		return "failed"
	}
	return "sold"
}
