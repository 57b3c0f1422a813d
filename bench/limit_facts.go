package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// limiterFacts are the facts that limiters alone have.
type limiterFacts struct {
	most, failed int64 // admitted of a limit of 1,000, and failed, in the worst of the tries
	writes       bool  // a denied request changes the state or its time to live
	withoutTTL   bool  // a key is left without a time to live
}

// subject is a short one.
const subject = "ip=192.0.2.1"

// limiterFacts finds out the facts of each limiter that is no variant of another.
func (s *server) limiterFacts(ctx context.Context, r *results) error {
	r.tellf("what limiters send, admit and keep")
	for db, c := range r.contestants {
		if c.kind == floor || c.variantOf != "" {
			continue
		}
		f := facts{sends: map[way]sent{}}
		err := errors.Join(s.sends(ctx, c, db, admitted, &f), s.keeps(ctx, c, db, &f))
		if !c.refills && err == nil {
			err = errors.Join(s.sends(ctx, c, db, denied, &f), s.contend(ctx, c, db, r.plan.tries, &f.limiter))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		r.facts[c.name] = f
	}
	return nil
}

// fresh calls f with so many instances of a limiter, on an empty database.
func (s *server) fresh(
	ctx context.Context, c contestant, db int, w workload, n int, f func(e *env, take []take) error,
) error {
	open := func(e *env) (take, error) { return c.limiter(ctx, e, w) }
	return instances(s, c, db, n, open, func(e *env, all []take) error {
		if err := e.empty(ctx); err != nil {
			return err
		}
		return f(e, all)
	})
}

// sends probes a row of requests. The first makes the key and does not count. The state
// before and after the second tells whether a denial writes.
func (s *server) sends(ctx context.Context, c contestant, db int, answer way, f *facts) error {
	return s.fresh(ctx, c, db, workloadOf(1, answer), 1, func(e *env, take []take) error {
		ask := func(must way) error {
			allowed, err := take[0](ctx, subject)
			return check(allowed, err, must, false)
		}
		if err := ask(admitted); err != nil {
			return err
		}
		before, err1 := state(ctx, e.rdb)
		err2 := ask(answer)
		after, err3 := state(ctx, e.rdb)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		if answer == denied {
			f.limiter.writes = len(after) != len(before)
			for key, was := range before {
				f.limiter.writes = f.limiter.writes || after[key].dump != was.dump || after[key].ttl > was.ttl
			}
		}
		var err error
		f.sends[answer], err = s.probe(ctx, db, func(int) error { return ask(answer) })
		return err
	})
}

const (
	keptSubjects = 20
	keptRequests = 5
	keptTries    = 1000 // of a state that may end before it is seen
)

// keeps sizes what a few requests of each of some subjects leave behind. What could
// not be seen in time stays 0.
func (s *server) keeps(ctx context.Context, c contestant, db int, f *facts) error {
	return s.fresh(ctx, c, db, usual, 1, func(e *env, take []take) error {
		seen := 0.0
		for n := 0; n < keptTries && seen < keptSubjects; n++ {
			if err := e.empty(ctx); err != nil {
				return err
			}
			for range keptRequests {
				if _, err := take[0](ctx, fmt.Sprintf("ip=192.0.2.%.0f", 100+seen)); err != nil {
					return err
				}
			}
			left, err := state(ctx, e.rdb)
			if err != nil {
				return err
			}
			for _, v := range left {
				f.bytes += float64(v.bytes)
				f.limiter.withoutTTL = f.limiter.withoutTTL || v.ttl < 0
			}
			f.keys += float64(len(left))
			seen += min(1, float64(len(left)))
		}
		f.bytes, f.keys = f.bytes/max(1, seen), f.keys/max(1, seen)
		return nil
	})
}

const (
	processes = 4   // each with a client of its own
	callers   = 16  // of each process
	mostCalls = 100 // of one caller
	denials   = 5   // after so many a caller stops
)

// contend sends many requests for one key at a time from several processes, against a
// limit of 1,000.
func (s *server) contend(ctx context.Context, c contestant, db, tries int, f *limiterFacts) error {
	for range tries {
		var let, failed atomic.Int64
		err := s.fresh(ctx, c, db, thousand, processes, func(_ *env, take []take) error {
			var running sync.WaitGroup
			for i := range processes * callers {
				running.Go(func() {
					for calls, denied := 0, 0; calls < mostCalls && denied < denials; calls++ {
						switch allowed, err := take[i%processes](ctx, subject); {
						case err != nil:
							failed.Add(1)
						case allowed:
							let.Add(1)
						default:
							denied++
						}
					}
				})
			}
			running.Wait()
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		f.most, f.failed = max(f.most, let.Load()), max(f.failed, failed.Load())
	}
	return nil
}

// value is what a key holds.
type value struct {
	dump  string
	ttl   time.Duration // negative for none
	bytes int64
}

// state is everything in a database. A key that ends meanwhile is left out.
func state(ctx context.Context, rdb redis.UniversalClient) (map[string]value, error) {
	keys, err := rdb.Keys(ctx, "*").Result()
	all := map[string]value{}
	for _, key := range keys {
		var dump *redis.StringCmd
		var ttl *redis.DurationCmd
		var bytes *redis.IntCmd
		_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			dump, ttl, bytes = p.Dump(ctx, key), p.PTTL(ctx, key), p.MemoryUsage(ctx, key, 0)
			return nil
		})
		switch {
		case errors.Is(err, redis.Nil):
		case err != nil:
			return nil, err
		default:
			all[key] = value{dump.Val(), ttl.Val(), bytes.Val()}
		}
	}
	return all, err
}
