package prometheus_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	neapprometheus "github.com/neap-go/neap/contrib/prometheus"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/storetest"
)

func ExampleNew() {
	rdb := storetest.Embedded() // a go-redis client, or a store
	collector, err := neapprometheus.New(rdb, nil)
	if err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	http.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	limiter, err := limit.New(rdb, "api", []limit.Policy{limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if _, err := limiter.Take(context.Background(), "user-17"); err != nil {
			log.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "neap_decisions_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// neap_decisions_total{degraded="false",name="api",outcome="denied",policy="hourly",primitive="limit"} 2
	// neap_decisions_total{degraded="false",name="api",outcome="granted",policy="hourly",primitive="limit"} 1
}
