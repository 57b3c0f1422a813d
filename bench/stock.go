package main

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/nethttp"
)

const (
	behindHTTP    = "Flash sales behind net/http"
	saleByDECR    = "DECR, and the handler"
	saleByLua     = "a script that calls DECR, and the handler"
	saleAtOnce    = "neap, sold at once, and the handler"
	saleConfirmed = "neap, reserved and confirmed, and the handler"
	saleAlone     = "the handler alone"
	buyerHeader   = "X-Buyer"
	salePath      = "/flash/"
	saleItem      = "phone"
	soldOut       = "tablet"
	saleUnits     = 10_000_000
)

// sales have the same handler behind the same server. Each request is from a buyer
// without a unit.
func sales() []contestant {
	return []contestant{
		{name: saleByDECR, kind: floor, group: behindHTTP, guard: openSale(byDECR),
			what: "a count in Redis, and no record of the buyers"},
		{name: saleByLua, kind: floor, group: behindHTTP, guard: openSale(byLua),
			what: "the same count, by EVALSHA: the least that any script costs"},
		{name: saleAtOnce, kind: ours, group: behindHTTP, guard: openSale(byStock(true)),
			what: "gate.Reserve with Confirm: one round trip, and another one if the handler fails"},
		{name: saleConfirmed, kind: ours, group: behindHTTP, guard: openSale(byStock(false)),
			what: "gate.Reserve: a lease, and a confirmation when the handler has answered"},
		{name: saleAlone, kind: floor, group: behindHTTP, guard: openSale(withoutStock),
			what: "what net/http, the handler and the client cost by themselves"},
	}
}

// seller is what stands before the handler of a sale, and what puts the units into an
// empty database.
type seller struct {
	sells func(http.Handler) http.Handler
	fill  func(context.Context) error // nil where everything is sold
}

func openSale(open func(context.Context, redis.UniversalClient) (seller, error)) guardOpener {
	return func(ctx context.Context, e *env) (*guard, error) {
		s, err := open(ctx, e.rdb)
		if err != nil {
			return nil, err
		}
		var sold atomic.Int64
		mux := http.NewServeMux()
		mux.Handle("POST "+salePath+"{item}", s.sells(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			sold.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"sold":true}`)
		})))
		client, err := e.serveHTTP(ctx, mux, 256)
		buy := func(item string, status int) func(context.Context, string) error {
			return func(_ context.Context, buyer string) error {
				return client.post(salePath+item, nil, must(status), buyerHeader, buyer)
			}
		}
		unlocked, refused := s.fill == nil, http.StatusConflict
		if unlocked {
			refused = http.StatusCreated
		}
		return &guard{
			first: buy(saleItem, http.StatusCreated), replay: buy(soldOut, refused),
			runs: sold.Load, unlocked: unlocked, fill: s.fill,
		}, err
	}
}

func withoutStock(context.Context, redis.UniversalClient) (seller, error) {
	return seller{sells: func(h http.Handler) http.Handler { return h }}, nil
}

func byDECR(_ context.Context, rdb redis.UniversalClient) (seller, error) {
	return byCount(rdb, func(ctx context.Context, key string) (int64, error) { return rdb.Decr(ctx, key).Result() }), nil
}

func byLua(ctx context.Context, rdb redis.UniversalClient) (seller, error) {
	sha, err := rdb.ScriptLoad(ctx, "return redis.call('DECR', KEYS[1])").Result()
	return byCount(rdb, func(ctx context.Context, key string) (int64, error) {
		return rdb.EvalSha(ctx, sha, []string{key}).Int64()
	}), err
}

// byCount has the handler run while the count of the item is not below 0.
func byCount(rdb redis.UniversalClient, decr func(ctx context.Context, key string) (int64, error)) seller {
	sells := func(h http.Handler) http.Handler {
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
	return seller{sells, func(ctx context.Context) error {
		return rdb.MSet(ctx, "left:"+saleItem, saleUnits, "left:"+soldOut, 0).Err()
	}}
}

func byStock(atOnce bool) func(context.Context, redis.UniversalClient) (seller, error) {
	return func(_ context.Context, rdb redis.UniversalClient) (seller, error) {
		s, err := stock.New(rdb, "flash", &stock.Options{Budget: budget})
		if err != nil {
			return seller{}, err
		}
		options := &gate.ReserveOptions{Confirm: atOnce}
		sells := nethttp.Middleware(gate.Reserve(s, gate.ByParam("item"), gate.ByHeader(buyerHeader), options))
		return seller{sells, func(ctx context.Context) error {
			until := time.Now().Add(time.Hour)
			for item, units := range map[string]int64{saleItem: saleUnits, soldOut: 1} {
				if _, err := s.Open(ctx, item, units, until); err != nil {
					return err
				}
			}
			_, err := s.Reserve(ctx, soldOut, "earlier", "1", &stock.ReserveOptions{Confirm: true})
			return err
		}}, nil
	}
}

// targetOfDECR is what the project set itself, of the throughput of the handler behind
// DECR.
const targetOfDECR = 0.8

// salesReport is STOCK.md.
func salesReport(r *results) report {
	return report{
		title: "A flash sale with neap and with DECR",
		prose: `
This page compares gate.Reserve with a counter that calls DECR.

The same handler answers 201 behind net/http, over HTTP. Each line of the table says what stands before the handler. A
buyer that gets a unit has none yet. A buyer that is refused asks for an item that is sold out, and gets a 409. DECR only
counts: a buyer that asks again buys twice, and a handler that fails leaves its unit sold.

` + r.inRounds() + `Ratios are to DECR, in the same round. The client shares the cores with the handler and Redis. What the
client and net/http cost, the last line, is part of both sides of a ratio. If the handler runs more or less often than it
must, the run ends with an error.`,
		sections: []section{
			targets(r.saleTargets()),
			r.requestTable(behindHTTP, "connections", `
Script CPU is what Redis counts for EVALSHA or DECR (INFO commandstats). Redis CPU is that of the whole server (INFO
cpu). The process is the handler, its server and its client. All of these are for one request, with the fewest
connections.`,
				[]cost{
					r.cost("script CPU, µs", "%.1f", commandCPU),
					r.cost("Redis CPU, µs", "%.0f", serverCPU),
					r.cost("CPU of the process, µs", "%.0f", processCPU),
					r.cost("allocations", "%.0f", allocations),
				}),
			r.who(""),
		},
	}
}

// saleTargets compare with DECR. Other load on the machine takes less away from the CPU
// time of a sale than from the throughput.
func (r *results) saleTargets() []target {
	const together = "CPU of Redis and the process together behind DECR"
	bound := target{format: "%.2f", unit: " of the throughput behind DECR", direction: atLeast, bound: targetOfDECR}
	rates := target{format: "%.2f", unit: bound.unit, direction: noTarget}
	ofSale := target{format: "%.2f", unit: " of what a sale at once takes", direction: noTarget}
	ofScript := target{format: "%.2f", unit: " of what a script takes", direction: noTarget}
	return r.cellTargets("connections",
		cellTarget{"sold at once", rate, sold, saleAtOnce, saleByDECR, bound},
		cellTarget{"a script that only calls DECR", rate, sold, saleByLua, saleByDECR, rates},
		cellTarget{"reserved and confirmed", rate, sold, saleConfirmed, saleByDECR, rates},
		cellTarget{"refused, since it is sold out", rate, refused, saleAtOnce, saleByDECR, rates},
		cellTarget{together, totalCPU, sold, saleByDECR, saleAtOnce, ofSale},
		cellTarget{together, totalCPU, sold, saleByDECR, saleByLua, ofScript},
	)
}
