package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/nethttp"
)

const behindHTTP kin = "flash sales behind net/http"

const (
	saleByDECR    = "DECR, and the handler"
	saleByLua     = "a script that calls DECR, and the handler"
	saleAtOnce    = "neap, sold at once, and the handler"
	saleConfirmed = "neap, reserved and confirmed, and the handler"
	saleAlone     = "the handler alone"
	saleTo        = "X-Buyer"
	salePath      = "/flash/"
	saleItem      = "phone"
	saleGone      = "gone" // of which there is none left
	saleUnits     = 10_000_000
)

// sellings have the same handler behind the same server; each request is a
// buyer's who has nothing yet.
func sellings() []guarding {
	all := []guarding{
		{name: saleByDECR, what: "a count in Redis, and no record of who has bought", kind: floor, open: openSale(byDECR)},
		{name: saleByLua, what: "the same count, by EVALSHA: the least that any script costs", kind: floor, open: openSale(byLua)},
		{
			name: saleAtOnce, what: "gate.Reserve with Confirm: one trip, and another where the handler fails", kind: ours,
			open: openSale(byStock(true)),
		},
		{name: saleConfirmed, what: "gate.Reserve: a lease, and a confirmation when the handler has answered", kind: ours, open: openSale(byStock(false))},
		{name: saleAlone, what: "what of it is net/http, the handler and the client", kind: floor, open: openSale(byNobody)},
	}
	for i := range all {
		all[i].kin = behindHTTP
	}
	return all
}

// seller is what stands before the handler of a sale, and what puts the units
// there: fill is called on an empty database.
type seller func(ctx context.Context, rdb *redis.Client) (sells func(http.Handler) http.Handler, fill func(context.Context) error, err error)

func openSale(by seller) func(context.Context, env) (*guarded, error) {
	return func(ctx context.Context, e env) (*guarded, error) {
		rdb := e.client()
		sells, fill, err := by(ctx, rdb)
		if err != nil {
			return nil, errors.Join(err, rdb.Close())
		}
		var sold atomic.Int64
		mux := http.NewServeMux()
		mux.Handle("POST "+salePath+"{item}", sells(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			sold.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"sold":true}`)
		})))
		served, err := serve(ctx, mux, saleCrowds[len(saleCrowds)-1])
		if err != nil {
			return nil, errors.Join(err, rdb.Close())
		}
		refused, free := http.StatusConflict, fill == nil
		if free {
			refused = http.StatusCreated
		}
		return &guarded{
			first: func(_ context.Context, buyer string) error {
				return served.send(http.StatusCreated, salePath+saleItem, nil, saleTo, buyer)
			},
			replay: func(_ context.Context, buyer string) error {
				return served.send(refused, salePath+saleGone, nil, saleTo, buyer)
			},
			runs: sold.Load, free: free, fill: fill,
			close: func() error { return errors.Join(served.close(), rdb.Close()) },
		}, nil
	}
}

func byNobody(context.Context, *redis.Client) (func(http.Handler) http.Handler, func(context.Context) error, error) {
	return func(h http.Handler) http.Handler { return h }, nil, nil
}

func byDECR(_ context.Context, rdb *redis.Client) (func(http.Handler) http.Handler, func(context.Context) error, error) {
	return counted(func(ctx context.Context, key string) (int64, error) { return rdb.Decr(ctx, key).Result() }), unitsOf(rdb), nil
}

func byLua(ctx context.Context, rdb *redis.Client) (func(http.Handler) http.Handler, func(context.Context) error, error) {
	sha, err := rdb.ScriptLoad(ctx, "return redis.call('DECR', KEYS[1])").Result()
	return counted(func(ctx context.Context, key string) (int64, error) {
		return rdb.EvalSha(ctx, sha, []string{key}).Int64()
	}), unitsOf(rdb), err
}

// unitsOf puts the units where DECR finds them.
func unitsOf(rdb *redis.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		return rdb.MSet(ctx, "left:"+saleItem, saleUnits, "left:"+saleGone, 0).Err()
	}
}

// counted has the handler run while the count of the item is not below 0.
func counted(decr func(ctx context.Context, key string) (int64, error)) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch left, err := decr(r.Context(), "left:"+r.PathValue("item")); {
			case err != nil:
				http.Error(w, "the count is away", http.StatusServiceUnavailable)
			case left < 0:
				http.Error(w, "sold out", http.StatusConflict)
			default:
				h.ServeHTTP(w, r)
			}
		})
	}
}

func byStock(atOnce bool) seller {
	return func(_ context.Context, rdb *redis.Client) (func(http.Handler) http.Handler, func(context.Context) error, error) {
		s, err := stock.New(rdb, "flash", &stock.Options{Budget: budget})
		if err != nil {
			return nil, nil, err
		}
		sells := nethttp.Middleware(gate.Reserve(s, gate.ByParam("item"), gate.ByHeader(saleTo), &gate.ReserveOptions{Confirm: atOnce}))
		return sells, func(ctx context.Context) error {
			until := time.Now().Add(time.Hour)
			for item, units := range map[string]int64{saleItem: saleUnits, saleGone: 1} {
				if _, err := s.Open(ctx, item, units, until); err != nil {
					return err
				}
			}
			_, err := s.Reserve(ctx, saleGone, "nobody", "1", &stock.ReserveOptions{Confirm: true})
			return err
		}, nil
	}
}
