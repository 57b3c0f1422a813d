package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

func (s *server) database(db int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.addr, DB: db})
}

func (s *server) empty(ctx context.Context, db int) error {
	rdb := s.database(db)
	defer rdb.Close()
	return rdb.FlushDB(ctx).Err()
}

// value is what a key holds.
type value struct {
	dump  string
	ttl   time.Duration // negative for none
	bytes int64
}

// state is everything in a database. A key that ends meanwhile is left out.
func state(ctx context.Context, rdb *redis.Client) (map[string]value, error) {
	keys, err := rdb.Keys(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
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
	return all, nil
}

// writesOnDenial compares the state before and after a denied request.
func (s *server) writesOnDenial(ctx context.Context, c contestant, e env) (changed bool, err error) {
	rdb := s.database(e.db)
	defer rdb.Close()
	return changed, s.fresh(ctx, c, e, few, func(l *limiter) error {
		for range few.quota(c.algorithm).limit {
			if _, err := l.take(ctx, subject); err != nil {
				return err
			}
		}
		before, err := state(ctx, rdb)
		if err != nil {
			return err
		}
		if allowed, err := l.take(ctx, subject); err != nil || allowed {
			return fmt.Errorf("a request beyond the limit: allowed %t, %w", allowed, err)
		}
		after, err := state(ctx, rdb)
		changed = len(after) != len(before)
		for key, was := range before {
			changed = changed || after[key].dump != was.dump || after[key].ttl > was.ttl
		}
		return err
	})
}

const (
	keptSubjects = 20
	keptRequests = 5
	keptTries    = 50 // of a state that may be gone before it is seen
)

// keep sizes what a few requests of each of some subjects leave behind. What
// could not be seen in time stays 0.
func (s *server) keep(ctx context.Context, c contestant, e env, f *facts) error {
	rdb := s.database(e.db)
	defer rdb.Close()
	return s.fresh(ctx, c, e, usual, func(l *limiter) error {
		seen := 0.0
		for i := range keptSubjects {
			for range keptTries {
				left, err := keepOne(ctx, rdb, l, fmt.Sprintf("ip=192.0.2.%d", 100+i))
				if err != nil {
					return err
				}
				if len(left) == 0 {
					continue
				}
				for _, v := range left {
					f.bytes += float64(v.bytes)
					f.immortal = f.immortal || v.ttl < 0
				}
				f.keys += float64(len(left))
				seen++
				break
			}
		}
		if seen > 0 {
			f.bytes, f.keys = f.bytes/seen, f.keys/seen
		}
		return nil
	})
}

func keepOne(ctx context.Context, rdb *redis.Client, l *limiter, subject string) (map[string]value, error) {
	if err := rdb.FlushDB(ctx).Err(); err != nil {
		return nil, err
	}
	for range keptRequests {
		if _, err := l.take(ctx, subject); err != nil {
			return nil, err
		}
	}
	return state(ctx, rdb)
}
