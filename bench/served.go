package main

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/nethttp"
)

const (
	limitsServed     = "Limits behind net/http"
	servedAlone      = "the handler alone"
	servedExact      = "neap fixed window"
	servedRemembered = "neap fixed window, remembered"
	servedPrepaid    = "neap fixed window, prepaid"
)

// servedLimits have the same handler behind the same server, and one limit for all requests before it.
func servedLimits() []contestant {
	of := func(opts limit.Options) guardOpener { return openServed(&opts) }
	return []contestant{
		{name: servedAlone, kind: floor, group: limitsServed, guard: openServed(nil),
			what: "what net/http, the handler and the client cost by themselves"},
		{name: servedExact, kind: ours, group: limitsServed, guard: of(limit.Options{}),
			what: "Redis decides about each request"},
		{name: servedRemembered, kind: ours, group: limitsServed, guard: of(limit.Options{RememberDenials: 100 * time.Millisecond}),
			what: "with RememberDenials of 100 ms"},
		{name: servedPrepaid, kind: ours, group: limitsServed, guard: of(limit.Options{Prepaid: limit.Prepaid{Most: 4096}}),
			what: "with Prepaid of up to 4,096 permits"},
	}
}

// openServed opens the handler, without a limit if opts is nil.
func openServed(opts *limit.Options) guardOpener {
	return func(ctx context.Context, e *env) (*guard, error) {
		var served atomic.Int64
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			served.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"ok":true}`)
		})
		mux := http.NewServeMux()
		g := &guard{runs: served.Load, unlocked: opts == nil}
		limited := func(name string, most int64) (*limit.Limiter, error) {
			if opts == nil {
				mux.Handle("POST /"+name, handler)
				return nil, nil
			}
			own := *opts
			own.Budget, own.Fail = budget, store.FailClosed
			l, err := limit.New(e.rdb, name, []limit.Policy{limit.FixedWindow{Limit: most, Window: time.Hour}}, &own)
			if err == nil {
				mux.Handle("POST /"+name, nethttp.Middleware(gate.RateLimit(l, everyone, nil))(handler))
			}
			return l, err
		}
		if _, err := limited(string(admitted), 1<<30); err != nil {
			return nil, err
		}
		full, err := limited(string(denied), 1)
		if err != nil {
			return nil, err
		}
		status := http.StatusOK
		if full != nil {
			status = http.StatusTooManyRequests
			g.fill = func(ctx context.Context) error {
				if _, err := full.Reset(ctx, "everyone"); err != nil {
					return err
				}
				d, err := full.Take(ctx, "everyone")
				return check(d.Allowed, err, admitted, false)
			}
		}
		client, err := e.serveHTTP(ctx, mux, 256)
		ask := func(path way, status int) func(context.Context, string) error {
			return func(context.Context, string) error { return client.post("/"+string(path), nil, must(status)) }
		}
		g.first, g.replay = ask(admitted, http.StatusOK), ask(denied, status)
		return g, err
	}
}

func everyone(gate.Request) (string, error) { return "everyone", nil }

// The targets: shares of the throughput of the handler alone.
const (
	targetExact     = 0.6
	targetInProcess = 0.85
)

// servedReport is HTTP.md.
func servedReport(r *results) report {
	share := func(bound float64) target {
		return target{format: "%.2f", unit: " of the handler alone", direction: atLeast, bound: bound}
	}
	return report{
		title: "What a limit leaves of net/http",
		prose: `
This page shows how much of a handler's throughput is left behind a limit.

The same handler answers 200 behind net/http, over HTTP. One limit for all requests stands before it. An admitted request
gets the limit's header fields. A denied one gets a 429 and a problem document. neap fails closed.

` + r.inRounds() + `Ratios are to the handler alone, in the same round. Client, server and Redis share the cores. If the
handler runs more or less often than it must, the run ends with an error.`,
		sections: []section{
			targets(r.cellTargets("connections",
				cellTarget{"admitted by Redis", rate, admitted, servedExact, servedAlone, share(targetExact)},
				cellTarget{"admitted by prepaid permits", rate, admitted, servedPrepaid, servedAlone, share(targetInProcess)},
				cellTarget{"denied by Redis", rate, denied, servedExact, servedAlone, share(targetExact)},
				cellTarget{"denied from memory", rate, denied, servedRemembered, servedAlone, share(targetInProcess)},
			)),
			r.requestTable(limitsServed, "connections", `
Redis CPU is that of the whole server (INFO cpu). The process is the handler, its server and its client. Both are per
request, with the fewest connections.`,
				[]cost{
					r.cost("Redis CPU, µs", "%.1f", serverCPU),
					r.cost("CPU of the process, µs", "%.0f", processCPU),
					r.cost("allocations", "%.0f", allocations),
				}),
			r.who(""),
		},
	}
}
