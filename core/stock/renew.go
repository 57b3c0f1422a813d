package stock

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/reply"
	"github.com/neap-go/neap/core/store"
)

// These reasons end a lease although nothing is lost.
var (
	errSold = errors.New("stock: the reservation is confirmed")
	errKept = errors.New("stock: the reservation is kept for the process that confirms it")
)

// renew renews one reservation, as a [lease.Holder].
func (r *Reservation) renew(ctx context.Context, ttl time.Duration) (left time.Duration, since time.Time, lost, err error) {
	select {
	case r.asking <- struct{}{}:
	case <-ctx.Done():
		return 0, time.Now(), nil, ctx.Err()
	}
	defer func() { <-r.asking }()
	numbers, since, err := r.of.renew(ctx, r.question.key, ttl, r)
	if err != nil {
		return 0, since, nil, err
	}
	return ttl, since, r.renewed(numbers[0]), nil
}

// renew asks Redis to renew reservations of one item, and returns a number for each.
func (s *Stock) renew(ctx context.Context, key string, ttl time.Duration, all ...*Reservation) (numbers []int64, since time.Time, err error) {
	args := append(make([]any, 0, 1+3*len(all)), milliseconds(ttl))
	for _, r := range all {
		args = append(args, r.question.buyer, r.question.id, r.claim())
	}
	each := renewScript.Replies(nil, reply.List(len(all), reply.OneOf(1, 2, none, unknown, disagrees)))
	told, since, _, err := s.asker.Ask(ctx, each, key, args...)
	numbers, _ = reply.Numbers(told)
	return numbers, since, err
}

// renewed returns how the reservation was lost. errSold counts as lost, too: it ends the
// lease.
func (r *Reservation) renewed(n int64) (lost error) {
	switch n {
	case 1:
		return nil
	case 2:
		r.becomes(sold)
		r.ended(errSold)
		return errSold
	case none:
		return ErrLapsed
	}
	return fault(n)
}

// renewals is a Stock as the wheel of leases has it.
type renewals struct{ *Stock }

// Renew renews reservations of one item, as a [lease.Renewer]. It leaves out those with a
// call in progress, which are renewed soon.
func (s renewals) Renew(key string, all []*lease.Member) {
	var asking []*Reservation
	for _, m := range all {
		r := (*Reservation)(m.Of.(*holding))
		if r.lease.Err() != nil {
			m.Result = lease.Over
			continue
		}
		if r.unrenewed.Load() {
			continue // until its lease ends
		}
		select {
		case r.asking <- struct{}{}:
			defer func() { <-r.asking }()
			asking = append(asking, r)
		default:
		}
	}
	if len(asking) == 0 {
		return
	}
	numbers, since, err := s.renew(context.Background(), key, s.opts.Lease, asking...)
	for i, r := range asking {
		var lost error
		if err == nil {
			lost = r.renewed(numbers[i])
		}
		r.lease.SetResult(r.lease.Renewed(s.opts.Lease, since, lost, err))
	}
}

// holding is a Reservation seen by its lease.
type holding Reservation

func (h *holding) Key() string { return h.question.key }

// Parent is not used: no caller has the lease's context.
func (h *holding) Parent() context.Context { return context.Background() }

func (h *holding) Held() { h.of.count.holding.Add(1) }

func (h *holding) Lost() {
	h.of.count.holding.Add(-1)
	h.of.count.lapsed.Add(1)
	if h.of.store.Observed() {
		background.Go(func() { (*Reservation)(h).notify(context.Background(), store.Lost) }) // Lost is called under the lease's mutex
	}
}

func (h *holding) Renew(ctx context.Context, ttl time.Duration) (left time.Duration, since time.Time, lost, err error) {
	return (*Reservation)(h).renew(ctx, ttl)
}
