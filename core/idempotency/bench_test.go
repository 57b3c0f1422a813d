package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

const (
	floorCall = "EVALSHA return 1"
	getCall   = "GET"
	scriptGET = "EVALSHA return GET" // the least that a script can do for a replay
	first     = "begin and complete"
	replay    = "replay"
	openSeal  = "replay, sealed"
)

func newCourse(b *testing.B) *redistest.Comparison {
	b.Helper()
	srv := redistest.NewStandalone(b)
	rdb := srv.Client(b, func(o *redis.Options) { o.ContextTimeoutEnabled, o.PoolSize = true, 64 })
	c := &redistest.Comparison{Admin: srv.Admin(b), Plain: "get"}
	prefix, result := redistest.Prefix(b), bytes.Repeat([]byte("0123456789abcdef"), 64)
	g := guard(b, rdb, prefix, nil)
	sealed := guard(b, rdb, prefix, &idempotency.Options{EncryptionKeys: []idempotency.EncryptionKey{newer}})
	one, get := c.Load(b, "return 1"), c.Load(b, "return redis.call('GET', KEYS[1])")
	plain := prefix + ":plain"
	overwrite(b, c.Admin, plain, string(result))
	for key, g := range map[string]*idempotency.Guard{"plain": g, "sealed": sealed} {
		if err := begin(b, g, key, digest).Conclude(b.Context(), idempotency.DoneWith(result)); err != nil {
			b.Fatal(err)
		}
	}
	replay1 := func(g *idempotency.Guard, key string) func(context.Context) error {
		return func(ctx context.Context) error {
			run, err := g.Begin(ctx, key, digest)
			if err == nil && len(run.Result) != len(result) {
				err = fmt.Errorf("got a result of %d bytes, want %d", len(run.Result), len(result))
			}
			return err
		}
	}
	var last atomic.Int64
	c.Add(floorCall, func(ctx context.Context) error { return rdb.EvalSha(ctx, one, []string{plain}, "1").Err() })
	c.Add(getCall, func(ctx context.Context) error { return rdb.Get(ctx, plain).Err() })
	c.Add(scriptGET, func(ctx context.Context) error { return rdb.EvalSha(ctx, get, []string{plain}).Err() })
	c.Add(first, func(ctx context.Context) error {
		run, err := g.Begin(ctx, "first-"+strconv.FormatInt(last.Add(1), 10), digest)
		if err != nil {
			return err
		}
		claim := run.Claim
		return claim.Conclude(ctx, idempotency.DoneWith(result))
	})
	c.Add(replay, replay1(g, "plain"))
	c.Add(openSeal, replay1(sealed, "sealed"))
	return c
}

// BenchmarkGuard measures the cost of a guard's calls.
func BenchmarkGuard(b *testing.B) { newCourse(b).Measure(b) }

// BenchmarkBesideGET reports how many GETs of the same bytes each call costs.
func BenchmarkBesideGET(b *testing.B) {
	worth := func(of, one float64) float64 { return one / of }
	newCourse(b).Beside(b, getCall, worth, map[string]string{
		"GETs/return-1": floorCall, "GETs/script-GET": scriptGET, "GETs/first": first, "GETs/replay": replay, "GETs/sealed": openSeal,
	})
}
