package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// The ways of asking a limiter, by the answer that it must give.
const (
	admitted way = "admitted"
	denied   way = "denied"
)

// manyCallers is the least number of goroutines for a limiter on AutoPipeline, which
// sends the calls of many together.
const manyCallers = 100

// take asks for one permit.
type take func(ctx context.Context, key string) (allowed bool, err error)

// limits measures RESULTS.md: what the limiters send and keep, and how fast they are.
func (s *server) limits(ctx context.Context, r *results) error {
	r.contestants = slices.Concat(floors(), neaps(), peers(), tutorials())
	err := s.limiterFacts(ctx, r)
	for _, keys := range r.plan.keys {
		for _, answer := range []way{admitted, denied} {
			if err == nil {
				err = s.limitsOf(ctx, r, s, keys, answer, r.plan.cells(keys, answer))
			}
		}
		if err == nil {
			err = s.limitsAway(ctx, r, keys)
		}
	}
	return err
}

// limitsAway measures the cells of the most callers of a server at a distance.
func (s *server) limitsAway(ctx context.Context, r *results, keys int) (err error) {
	var opened scope
	defer opened.close(&err)
	far, err := s.away(ctx, &opened)
	if err != nil {
		return err
	}
	return far.limitsOf(ctx, r, s, keys, admitted, []cell{{admitted, keys, slices.Max(r.plan.goroutines), true}})
}

// limitsOf measures the cells of one number of keys and one answer. Every limiter
// starts afresh, and has used each key once before it is asked: by near, the same server without a distance.
func (s *server) limitsOf(ctx context.Context, r *results, near *server, keys int, answer way, cells []cell) error {
	if err := s.admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	group := slices.DeleteFunc(slices.Clone(r.contestants), func(c contestant) bool {
		return answer == denied && c.refills || c.only != "" && c.only != answer
	})
	subjects := subjects(keys)
	return s.measure(ctx, r, group, cells, func(c contestant, e *env) (slicer, error) {
		take, err := c.limiter(ctx, e, workloadOf(keys, answer))
		if err == nil {
			err = near.useEach(ctx, c, e.db, workloadOf(keys, answer), subjects)
		}
		if err != nil {
			return nil, err
		}
		call := func(ctx context.Context, _ int) error {
			allowed, err := take(ctx, subjects[rand.IntN(len(subjects))])
			return check(allowed, err, answer, c.kind == floor)
		}
		sent, err := s.probe(ctx, e.db, func(i int) error { return call(ctx, i) })
		return func(ctx context.Context, at cell, length time.Duration) (figures, error) {
			return s.slice(ctx, load{at.goroutines, length, call, sent.share, true})
		}, err
	})
}

// check finds an answer other than the one that must be given. A floor gives any.
func check(allowed bool, err error, must way, isFloor bool) error {
	if err == nil && allowed != (must == admitted) && !isFloor {
		return fmt.Errorf("%w: a request that must be %s was not", errWrong, must)
	}
	return err
}

func workloadOf(keys int, answer way) workload {
	switch {
	case answer == denied:
		return single
	case keys > 1:
		return manyKeys
	}
	return hotKey
}

// useEach has a limiter of its own take once for every key, which must be admitted.
func (s *server) useEach(ctx context.Context, c contestant, db int, w workload, subjects []string) (err error) {
	var opened scope
	defer opened.close(&err)
	e, err := s.env(&opened, c.client, db)
	if err != nil {
		return err
	}
	take, err := c.limiter(ctx, e, w)
	if err != nil {
		return err
	}
	const callers = 64
	var running sync.WaitGroup
	faults := make([]error, callers)
	for caller := range callers {
		running.Go(func() {
			for i := caller; i < len(subjects) && faults[caller] == nil; i += callers {
				allowed, err := take(ctx, subjects[i])
				faults[caller] = check(allowed, err, admitted, false)
			}
		})
	}
	running.Wait()
	return errors.Join(faults...)
}

// subjects are n short ones.
func subjects(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("ip=10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	}
	return all
}

func keysText(n int) string {
	if n == 1 {
		return "one hot key"
	}
	return fmt.Sprintf("%d,%03d keys", n/1000, n%1000)
}
