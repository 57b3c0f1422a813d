package usecases

import (
	"context"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
)

// KnownAfterwards limits the tokens of a model. A request takes an estimate, and is
// charged what it used when the handler has returned.
func KnownAfterwards(rdb script.Client, estimate func(gate.Request) (int64, error), used func(context.Context) int64) (gate.Gate, error) {
	tokens, err := limit.New(rdb, "models", []limit.Policy{
		limit.TokenBucket{Name: "tokens", Rate: 20_000, Per: time.Minute, MaxDebt: 20_000, Unit: "tokens"},
		limit.PerRequest(limit.TokenBucket{Name: "requests", Rate: 60, Per: time.Minute}),
		limit.WithLease(limit.CalendarWindow{Name: "month", Limit: 50_000_000, Every: limit.Month, Unit: "tokens"}, time.Minute),
	}, nil)
	if err != nil {
		return nil, err
	}
	return gate.RateLimit(tokens, gate.ByValue("tenant", tenantKey{}), &gate.RateLimitOptions{
		Cost:   estimate, // the prompt and max_tokens
		Clamp:  true,
		Wait:   2 * time.Second,
		Settle: func(r gate.Request, _ *gate.Reply) int64 { return used(r.Context()) },
	}), nil
}
