package otel_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	neapotel "github.com/neap-go/neap/contrib/otel"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/storetest"
)

func ExampleObserve() {
	ctx := context.Background()
	rdb := storetest.Embedded() // a go-redis client, or a store
	reader := metric.NewManualReader()
	stop, err := neapotel.Observe(rdb, &neapotel.Options{ // nil is the global provider
		MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	limiter, err := limit.New(rdb, "api", []limit.Policy{limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		log.Print(err)
		return
	}
	for range 3 {
		if _, err := limiter.Take(ctx, "user-17"); err != nil {
			log.Print(err)
			return
		}
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Print(err)
		return
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if data, is := m.Data.(metricdata.Histogram[float64]); is {
			for _, p := range data.DataPoints {
				outcome, _ := p.Attributes.Value("neap.outcome")
				policy, _ := p.Attributes.Value("neap.policy")
				fmt.Println(m.Name, policy.AsString(), outcome.AsString(), p.Count)
			}
		}
	}
	// Unordered output:
	// neap.decision.duration hourly denied 2
	// neap.decision.duration hourly granted 1
}
