package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// facts are what a contestant does, however fast.
type facts struct {
	admitted, denied call
	// most is what a limit of 1,000 admitted in the worst of its tries.
	most, failed int64
	// writes says that a denied request changed the state or its time to live.
	writes bool
	// immortal says that a key was left without a time to live.
	immortal bool
	keys     float64 // a subject's; 0 where they are gone too soon to be seen
	bytes    float64 // of these together
}

// call is what one decision costs in commands.
type call struct {
	commands []string
	trips    float64
}

// learn finds out the facts of every contestant that is not the twin of
// another.
func (s *server) learn(ctx context.Context, all []contestant, tries int, progress io.Writer) (map[string]facts, error) {
	fmt.Fprintln(progress, "what they send, admit and keep")
	if err := s.admin.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	learnt := map[string]facts{}
	for db, c := range all {
		if c.kind == floor || c.twin != "" {
			continue
		}
		f, err := s.learnOne(ctx, c, env{s.addr, db}, tries)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		learnt[c.name] = f
	}
	return learnt, nil
}

func (s *server) learnOne(ctx context.Context, c contestant, e env, tries int) (facts, error) {
	f := facts{}
	var err error
	if f.admitted, err = s.call(ctx, c, e, ample, false); err != nil {
		return f, err
	}
	if err = s.keep(ctx, c, e, &f); err != nil || c.refills {
		return f, err
	}
	if f.denied, err = s.call(ctx, c, e, spent, true); err != nil {
		return f, err
	}
	if f.writes, err = s.writesOnDenial(ctx, c, e); err != nil {
		return f, err
	}
	for range tries {
		admitted, failed, err := s.contend(ctx, c, e)
		if err != nil {
			return f, err
		}
		f.most, f.failed = max(f.most, admitted), max(f.failed, failed)
	}
	return f, nil
}

// fresh opens a contestant on an empty database, and closes it after f.
func (s *server) fresh(ctx context.Context, c contestant, e env, w workload, f func(*limiter) error) error {
	if err := s.empty(ctx, e.db); err != nil {
		return err
	}
	l, err := c.open(ctx, e, w)
	if err != nil {
		return err
	}
	return errors.Join(f(l), l.close())
}

// call sends a row of requests, one after the other, of which all but the
// first, that makes the key, are counted.
func (s *server) call(ctx context.Context, c contestant, e env, w workload, denied bool) (call, error) {
	var one call
	return one, s.fresh(ctx, c, e, w, func(l *limiter) error {
		if allowed, err := l.take(ctx, subject); err != nil || !allowed {
			return fmt.Errorf("the first request: allowed %t, %w", allowed, err)
		}
		ask := func() error {
			for range probes {
				allowed, err := l.take(ctx, subject)
				if err != nil {
					return err
				}
				if allowed == denied {
					return fmt.Errorf("a request that must be %s was not", cell{denied: denied}.answer())
				}
			}
			return nil
		}
		var err error
		if one.trips, err = s.trips(ctx, ask); err != nil {
			return err
		}
		heard, err := s.watch(ctx, e.db, ask)
		if err != nil {
			return err
		}
		one.commands = heard.outer[len(heard.outer)-len(heard.outer)/probes:]
		return nil
	})
}

// subject is a short one.
const subject = "ip=192.0.2.1"

// trips is how often the server read from a socket for each of the requests
// that ask makes: one caller waits for each reply. The end of a connection is
// a read too, so the first count waits for those that were closed before.
func (s *server) trips(ctx context.Context, ask func() error) (float64, error) {
	var reads [4]int64
	for i := range reads {
		if i == 3 {
			if err := ask(); err != nil {
				return 0, err
			}
		}
		now, err := s.counts(ctx)
		if err != nil {
			return 0, err
		}
		reads[i] = now.reads
	}
	own := reads[2] - reads[1]
	return float64(reads[3]-reads[2]-own) / probes, nil
}

const (
	processes  = 4 // instances, each with a client of its own
	eachCalls  = 16
	mostCalls  = 100 // of one caller
	enoughDeny = 5   // after so many denials a caller goes home
)

// contend sends many requests for one key at a time from several instances,
// against a limit of 1,000.
func (s *server) contend(ctx context.Context, c contestant, e env) (admitted, failed int64, err error) {
	if err := s.empty(ctx, e.db); err != nil {
		return 0, 0, err
	}
	var let, lost atomic.Int64
	var done sync.WaitGroup
	for range processes {
		l, err := c.open(ctx, e, thousand)
		if err != nil {
			return 0, 0, err
		}
		defer func() { err = errors.Join(err, l.close()) }()
		for range eachCalls {
			done.Go(func() {
				for calls, denied := 0, 0; calls < mostCalls && denied < enoughDeny; calls++ {
					switch allowed, err := l.take(ctx, subject); {
					case err != nil:
						lost.Add(1)
					case allowed:
						let.Add(1)
					default:
						denied++
					}
				}
			})
		}
	}
	done.Wait()
	return let.Load(), lost.Load(), ctx.Err()
}
