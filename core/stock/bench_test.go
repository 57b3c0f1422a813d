package stock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
)

const (
	decrCall  = "DECR"
	floorCall = "EVALSHA return 1"
	decrSHA   = "EVALSHA return DECR"
	atOnceOne = "reserve at once"
	leased    = "reserve and confirm"
	refusal   = "sold out"
	cancels   = "reserve at once and cancel"
)

func newCourse(b *testing.B) *redistest.Comparison {
	b.Helper()
	srv := redistest.NewStandalone(b)
	// As admin, because neap's user may not DECR.
	rdb := srv.Admin(b, func(o *redis.Options) { o.ContextTimeoutEnabled, o.PoolSize = true, 64 })
	c := &redistest.Comparison{Admin: srv.Admin(b), Plain: "decr"}
	prefix := redistest.Prefix(b)
	key := prefix + ":plain"
	if err := c.Admin.Set(b.Context(), key, stock.MaxUnits, time.Hour).Err(); err != nil {
		b.Fatal(err)
	}
	s := newStock(b, rdb, prefix, nil)
	if err := s.Warm(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, item := range []string{atOnceOne, leased, cancels} {
		open(b, s, item, stock.MaxUnits)
	}
	open(b, s, refusal, 1)
	reserve(b, s, refusal, "ann", "1", atOnce)
	one, decr := c.Load(b, "return 1"), c.Load(b, "return redis.call('DECR', KEYS[1])")
	var last atomic.Int64
	take := func(item string, opts *stock.ReserveOptions) (*stock.Reservation, error) {
		buyer := strconv.FormatInt(last.Add(1), 10)
		return s.Reserve(b.Context(), item, buyer, buyer, opts)
	}
	c.Add(decrCall, func(ctx context.Context) error { return rdb.Decr(ctx, key).Err() })
	c.Add(floorCall, func(ctx context.Context) error { return rdb.EvalSha(ctx, one, []string{key}).Err() })
	c.Add(decrSHA, func(ctx context.Context) error { return rdb.EvalSha(ctx, decr, []string{key}).Err() })
	c.Add(atOnceOne, func(context.Context) error {
		_, err := take(atOnceOne, atOnce)
		return err
	})
	c.Add(refusal, func(context.Context) error {
		if _, err := take(refusal, atOnce); !errors.Is(err, stock.ErrSoldOut) {
			return fmt.Errorf("not sold out: %w", err)
		}
		return nil
	})
	c.Add(leased, func(ctx context.Context) error {
		r, err := take(leased, nil)
		if err != nil {
			return err
		}
		return r.Confirm(ctx)
	})
	c.Add(cancels, func(ctx context.Context) error {
		r, err := take(cancels, atOnce)
		if err != nil {
			return err
		}
		return r.Cancel(ctx)
	})
	return c
}

// BenchmarkStock measures the cost of a Stock's calls.
func BenchmarkStock(b *testing.B) { newCourse(b).Measure(b) }

// BenchmarkBesideDECR reports the throughput of each call as a fraction of the throughput
// of DECR.
func BenchmarkBesideDECR(b *testing.B) {
	part := func(of, one float64) float64 { return of / one }
	newCourse(b).Beside(b, decrCall, part, map[string]string{
		"of-DECR/return-1": floorCall, "of-DECR/script-DECR": decrSHA, "of-DECR/at-once": atOnceOne,
		"of-DECR/sold-out": refusal, "of-DECR/confirmed": leased,
	})
}
