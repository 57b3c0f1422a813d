// A service whose limits, locks, guards and stock can be watched: by Prometheus at /metrics, and with -otel by
// OpenTelemetry, which prints its metrics.
//
// With -load the program is its own client, and does what goes wrong in a service now and then: some clients ask too
// often, some payments come to no answer, and somebody edits the record of an item. Stop its Redis for some seconds
// and start it again, and all that package contrib/prometheus says is to be watched can be seen. Without -redis it has an
// embedded Redis, which does not go away.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/sdk/metric"

	neapotel "github.com/neap-go/neap/contrib/otel"
	neapprometheus "github.com/neap-go/neap/contrib/prometheus"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/examples/internal/backend"
)

func main() {
	url := flag.String("redis", "", "URL of a Redis (default an embedded one)")
	addr := flag.String("addr", "localhost:8080", "where to listen")
	load := flag.Bool("load", false, "be the clients of the service, too")
	budget := flag.Duration("budget", 0, "how long a call to Redis may take (default 50ms for limits, 250ms for the others)")
	print := flag.Bool("otel", false, "print the metrics of OpenTelemetry every ten seconds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *url, *addr, *budget, *load, *print)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "observed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, addr string, budget time.Duration, load, print bool) error {
	redis, err := backend.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer redis.Close()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return serve(ctx, redis, budget, l, load, print)
}

// serve serves until ctx ends.
func serve(ctx context.Context, redis *backend.Backend, budget time.Duration, l net.Listener, load, print bool) error {
	st, err := store.Open(redis.Redis, &store.Options{Budget: budget})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	unobserve, err := observe(st, registry, print)
	if err != nil {
		return err
	}
	defer unobserve()
	s, err := newService(ctx, st)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	s.routes(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux}
	fmt.Println("http://"+l.Addr().String()+"/metrics", "of", redis.Where)
	if load {
		go (&crowd{url: "http://" + l.Addr().String(), rdb: redis.Redis, sale: s.sale}).play(ctx)
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// observe has both libraries told of everything on the client's store. A service of yours needs one of the two.
func observe(rdb script.Client, registry *prometheus.Registry, print bool) (stop func(), err error) {
	collector, err := neapprometheus.New(rdb, nil)
	if err != nil {
		return nil, err
	}
	registry.MustRegister(collector)
	if !print {
		return collector.Stop, nil
	}
	exporter, err := stdoutmetric.New(stdoutmetric.WithPrettyPrint())
	if err != nil {
		return nil, err
	}
	provider := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(exporter, metric.WithInterval(10*time.Second))))
	stopOtel, err := neapotel.Observe(rdb, &neapotel.Options{MeterProvider: provider})
	if err != nil {
		return nil, err
	}
	return func() {
		collector.Stop()
		stopOtel()
		_ = provider.Shutdown(context.Background()) // the last print may fail
	}, nil
}
