package lock

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// holding is a Lock seen by its lease.
type holding Lock

// begin notes that the lock was granted, and reports whether its lease is still running.
func (l *Lock) begin(granted time.Time, ttl time.Duration) bool {
	return l.lease.Begin((*holding)(l), &l.of.terms, granted, ttl)
}

func (h *holding) Key() string { return h.key }

func (h *holding) Parent() context.Context {
	return context.WithValue(h.parent, contextKey{}, (*Lock)(h))
}

func (h *holding) Held() {
	if !h.handed {
		h.of.queues.hold(h.key, h.queue)
	}
}

func (h *holding) Lost() {
	h.of.queues.free(h.key, h.queue)
	h.of.count.lost.Add(1)
	if h.of.store.Observed() {
		background.Go(func() { h.of.notifyLost(context.WithoutCancel(h.parent)) }) // Lost is called under the lease's mutex
	}
}

func (h *holding) Renew(ctx context.Context, ttl time.Duration) (left time.Duration, since time.Time, lost, err error) {
	n, since, _, err := h.of.ask(ctx, extendScript, h.key, h.hold, number(h.fence), milliseconds(ttl))
	if err != nil {
		return 0, since, nil, err
	}
	return time.Duration(n) * time.Millisecond, since, verdict(n, false), nil
}
