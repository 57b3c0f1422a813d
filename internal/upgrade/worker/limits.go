package main

import (
	"context"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/upgrade/wire"
)

var limitOps = map[string]op{
	"limit.take":   take,
	"limit.peek":   peek,
	"limit.refund": refund,
	"limit.settle": settle,
	"limit.reset": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		l, err := w.limiter(c)
		if err == nil {
			a.OK, err = l.Reset(ctx, c.Key)
		}
		return err
	},
	"limit.return": func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		return w.store(&c.Conf).Drain(ctx)
	},
	"limit.ban": func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		l, err := w.limiter(c)
		if err == nil {
			err = l.Ban(ctx, c.Key, span(c.For))
		}
		return err
	},
	"limit.unban": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		l, err := w.limiter(c)
		if err == nil {
			a.OK, err = l.Unban(ctx, c.Key)
		}
		return err
	},
	"limit.banned": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		l, err := w.limiter(c)
		if err != nil {
			return err
		}
		left, err := l.Banned(ctx, c.Key)
		a.OK, a.N = left > 0, left.Milliseconds()
		return err
	},
	"slots.try": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		s, err := w.slots(c)
		if err != nil {
			return err
		}
		slot, err := s.Try(ctx, c.Key)
		if err != nil {
			return err
		}
		if a.OK = slot.Allowed; a.OK {
			w.keep(c, slot)
		}
		a.N = slot.Remaining
		return nil
	},
	"slots.release": func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		slot, err := got[*inflight.Slot](w, c)
		if err == nil {
			err = slot.Release(ctx)
			w.forget(c)
		}
		return err
	},
	"slots.count": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		s, err := w.slots(c)
		if err == nil {
			a.N, err = s.InFlight(ctx, c.Key)
		}
		return err
	},
}

func (w *worker) limiter(c *wire.Call) (*limit.Limiter, error) {
	return one(w, "limit", &c.Conf, func() (*limit.Limiter, error) {
		var policies []limit.Policy
		for _, p := range c.Conf.Policies {
			made, err := policy(p)
			if err != nil {
				return nil, err
			}
			policies = append(policies, made)
		}
		return limit.New(w.store(&c.Conf), c.Conf.Name, policies,
			&limit.Options{Fail: store.FailClosed, Prepaid: limit.Prepaid{Most: c.Conf.Prepaid}})
	})
}

func policy(p wire.Policy) (made limit.Policy, err error) {
	switch p.Kind {
	case "bucket":
		made = limit.TokenBucket{Name: p.Name, Rate: p.Limit, Per: span(p.Per), Burst: p.Burst, MaxDebt: p.Debt}
	case "window":
		made = limit.FixedWindow{Name: p.Name, Limit: p.Limit, Window: span(p.Per), MaxDebt: p.Debt}
	case "sliding":
		made = limit.SlidingWindow{Name: p.Name, Limit: p.Limit, Window: span(p.Per)}
	case "log":
		made = limit.SlidingLog{Name: p.Name, Limit: p.Limit, Window: span(p.Per)}
	case "calendar":
		zone, err := time.LoadLocation(p.Zone)
		if err != nil {
			return nil, fmt.Errorf("a calendar: %w", err)
		}
		made = limit.CalendarWindow{Name: p.Name, Limit: p.Limit, Every: limit.Month, Location: zone, MaxDebt: p.Debt}
	default:
		return nil, fmt.Errorf("the worker knows no policy %q", p.Kind)
	}
	if p.Kept {
		made = limit.KeepOnChange(made)
	}
	if p.Lease > 0 {
		made = limit.WithLease(made, span(p.Lease))
	}
	if p.Ban != nil {
		made = limit.WithBan(made, limit.Ban{After: *p.Ban, Within: time.Hour, For: time.Hour})
	}
	if p.PerRequest {
		made = limit.PerRequest(made)
	}
	if p.Shadow {
		made = limit.Shadow(made)
	}
	return made, nil
}

// told writes a decision into an answer: Counts are what each policy has left.
func told(a *wire.Answer, d *limit.Decision) {
	a.OK, a.N = d.Allowed, d.Remaining
	for s := range d.States() {
		a.Counts = append(a.Counts, s.Remaining)
	}
}

func take(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
	l, err := w.limiter(c)
	if err != nil {
		return err
	}
	d, err := l.TakeN(ctx, c.Key, c.N)
	if err != nil {
		return err
	}
	told(a, &d)
	if c.As != "" && d.Allowed {
		w.keep(c, &d)
	}
	return nil
}

func peek(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
	l, err := w.limiter(c)
	if err != nil {
		return err
	}
	d, err := l.PeekN(ctx, c.Key, max(c.N, 1))
	if err == nil {
		told(a, &d)
	}
	return err
}

func refund(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
	d, err := got[*limit.Decision](w, c)
	if err != nil {
		return err
	}
	defer w.forget(c)
	return d.Refund(ctx)
}

// settle answers with what the actual cost left, and what was forgiven.
func settle(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
	d, err := got[*limit.Decision](w, c)
	if err != nil {
		return err
	}
	defer w.forget(c)
	s, err := d.Settle(ctx, c.N)
	if err == nil {
		told(a, &s.After)
		a.Attempt = s.Forgiven
	}
	return err
}

func (w *worker) slots(c *wire.Call) (*inflight.Limiter, error) {
	return one(w, "slots", &c.Conf, func() (*inflight.Limiter, error) {
		return inflight.New(w.store(&c.Conf), c.Conf.Name, c.Conf.Slots,
			&inflight.Options{Lease: span(c.Conf.Lease), Fail: store.FailClosed})
	})
}
