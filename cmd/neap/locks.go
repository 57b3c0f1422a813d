package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/neap-go/neap/core/lock"
)

type lockGroup struct {
	Show  lockShow  `cmd:"" help:"Show the holder of a lock."`
	Force lockForce `cmd:"" help:"End a lock whose holder is gone."`
	Run   lockRun   `cmd:"" help:"Run a command while it holds a lock: neap lock run NAME [SUBJECT…] -- COMMAND…"`
}

// locked is a lock on the command line.
type locked struct {
	Name string `arg:"" help:"The locker's name."`
	whom
}

// lockLine is what is known of a lock.
type lockLine struct {
	Name  string `json:"name"`
	Key   string `json:"key"`
	Held  bool   `json:"held"`
	Owner string `json:"owner"`
	Holds int    `json:"holds"`
	Fence int64  `json:"fence"`
	Lease int64  `json:"lease_ms"`
}

// open is the locker, and what it knows of the lock.
func (l *locked) open(ctx context.Context, a *app) (*lock.Locker, lockLine, error) {
	key, err := l.text()
	if err != nil {
		return nil, lockLine{}, err
	}
	_, st, err := a.begin(ctx)
	if err != nil {
		return nil, lockLine{}, err
	}
	locker, err := lock.New(st, l.Name, nil)
	if err != nil {
		return nil, lockLine{}, usage(err)
	}
	s, err := locker.Inspect(ctx, key)
	return locker, lockLine{l.Name, key, s.Held, s.Owner, s.Holds, s.Fence, s.Lease.Milliseconds()}, err
}

type lockShow struct{ locked }

func (l *lockShow) Run(ctx context.Context, a *app) error {
	_, s, err := l.open(ctx, a)
	if err != nil {
		return err
	}
	err = a.show(s, func(w *page) {
		if !s.Held {
			w.linef("%s is free.%s", s.Key, s.lastFence())
			return
		}
		w.row("OWNER", "HOLDS", "LAPSES IN", "FENCE")
		w.row(s.Owner, s.Holds, duration(s.Lease), strconv.FormatInt(s.Fence, 10))
	})
	if err == nil && !s.Held {
		err = not
	}
	return err
}

func (s lockLine) lastFence() string {
	if s.Fence == 0 {
		return fmt.Sprintf(" %s has no record of it: nobody locked it lately, or the name or the key is written otherwise, as in param:order=17.", s.Name)
	}
	return fmt.Sprintf(" Its last fence was %d.", s.Fence)
}

type lockForce struct {
	locked

	Yes bool `short:"y" help:"Do not ask."`
}

func (l *lockForce) Run(ctx context.Context, a *app) error {
	locker, s, err := l.open(ctx, a)
	if err != nil {
		return err
	}
	found := s.Held
	if found {
		if err := l.confirm(ctx, a, locker, s); err != nil {
			return err
		}
		if found, err = locker.ForceRelease(ctx, s.Key); err != nil {
			return err
		}
	}
	return a.told(nil, done{l.Name, s.Key, found, []string{}}, s.Key+" is free.", s.Key+" was free already.")
}

// confirm asks, and looks that the lock is then as it was: an answer takes a person time.
func (l *lockForce) confirm(ctx context.Context, a *app, locker *lock.Locker, s lockLine) error {
	if err := a.confirm(ctx, l.Yes, fmt.Sprintf(
		"%s is held by %s, %s, which lapses in %s unless it is renewed. If the holder is alive, it goes on working beside the next one. End it?",
		s.Key, s.Owner, count(s.Holds, "hold"), span(duration(s.Lease)))); err != nil || l.Yes {
		return err
	}
	now, err := locker.Inspect(ctx, s.Key)
	if err == nil && now.Fence != s.Fence {
		err = errChanged
	}
	return err
}
