package main

import (
	"context"
	"errors"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/upgrade/wire"
)

var errTick = errors.New("the run of this tick fails, as it was told to")

var lockOps = map[string]op{
	"lock.try": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		l, err := w.locker(c)
		if err != nil {
			return err
		}
		held, err := l.Try(ctx, c.Key)
		return w.locked(c, a, held, err)
	},
	"lock.acquire": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		l, err := w.locker(c)
		if err != nil {
			return err
		}
		held, err := l.Acquire(ctx, c.Key)
		return w.locked(c, a, held, err)
	},
	"lock.release": func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		held, err := got[*lock.Lock](w, c)
		if err == nil {
			err = held.Release(ctx)
			w.forget(c)
		}
		return err
	},
	"lock.extend": func(ctx context.Context, w *worker, c *wire.Call, _ *wire.Answer) error {
		held, err := got[*lock.Lock](w, c)
		if err == nil {
			err = held.Extend(ctx, span(c.For))
		}
		return err
	},
	"lock.inspect": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		l, err := w.locker(c)
		if err != nil {
			return err
		}
		s, err := l.Inspect(ctx, c.Key)
		a.OK, a.State, a.N, a.Fence = s.Held, s.Owner, int64(s.Holds), s.Fence
		return err
	},
	"lock.force": func(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
		l, err := w.locker(c)
		if err == nil {
			a.OK, err = l.ForceRelease(ctx, c.Key)
		}
		return err
	},
	"lock.once": once,
}

func (w *worker) locker(c *wire.Call) (*lock.Locker, error) {
	own := c.Conf
	own.Owner = "" // Lockers of several owners share one
	l, err := one(w, "lock", &own, func() (*lock.Locker, error) {
		return lock.New(w.store(&own), own.Name, &lock.Options{
			Lease: span(own.Lease), Wait: span(own.Wait), RetryDelay: span(own.RetryDelay),
		})
	})
	if err == nil && c.Conf.Owner != "" {
		l = l.As(c.Conf.Owner)
	}
	return l, err
}

func (w *worker) locked(c *wire.Call, a *wire.Answer, held *lock.Lock, err error) error {
	if err != nil {
		return err
	}
	a.OK, a.Fence = true, held.Fence()
	w.keep(c, held)
	return nil
}

// once runs a tick, which fails if How says so.
func once(ctx context.Context, w *worker, c *wire.Call, a *wire.Answer) error {
	l, err := w.locker(c)
	if err != nil {
		return err
	}
	rerun := lock.Never
	if c.How != "never" {
		rerun = lock.Again
	}
	a.OK, err = l.Once(ctx, c.Key, time.UnixMilli(c.N), rerun, func(ctx context.Context) error {
		held, ok := lock.FromContext(ctx)
		if ok {
			a.Fence = held.Fence()
		}
		if c.How == "again, but fails" {
			return errTick
		}
		return nil
	})
	if errors.Is(err, errTick) {
		err = nil
	}
	return err
}
