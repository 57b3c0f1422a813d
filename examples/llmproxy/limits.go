package main

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
)

// limits are tokens and requests a minute, of each user and of each model.
type limits struct {
	users, models *limit.Limiter
}

func newLimits(rdb script.Client) (limits, error) {
	users, err1 := limit.New(rdb, "llm-users", aMinute("user", 1_000, 20), nil)
	models, err2 := limit.New(rdb, "llm-models", aMinute("model", 2_000, 100), nil)
	return limits{users, models}, errors.Join(err1, err2)
}

func aMinute(of string, tokens, requests int64) []limit.Policy {
	return []limit.Policy{
		limit.TokenBucket{Name: of + "-tokens", Rate: tokens, Per: time.Minute, MaxDebt: tokens, Unit: "tokens"},
		limit.PerRequest(limit.TokenBucket{Name: of + "-requests", Rate: requests, Per: time.Minute}),
	}
}

var (
	byUser  = gate.ByValue("user", callKey{})
	byModel = gate.ByJSON("/model", &gate.BodyOptions{MaxBody: maxBody})
)

// gate takes the estimate of a request, for which it may wait 2 s for each of the two, and settles it to what was used.
func (l limits) gate() gate.Gate {
	opts := &gate.RateLimitOptions{
		Cost:   estimate,
		Clamp:  true,
		Wait:   2 * time.Second,
		Settle: func(r gate.Request, _ *gate.Reply) int64 { return callOf(r).used() },
	}
	return gate.Chain(gate.RateLimit(l.users, byUser, opts), gate.RateLimit(l.models, byModel, opts))
}

func estimate(r gate.Request) (int64, error) {
	body, err := r.Body(maxBody)
	if err != nil {
		return 0, err
	}
	var q question
	if json.Unmarshal(body, &q) != nil || q.MaxTokens < 0 {
		return 0, gate.Refuse(400, "The body of the request is no question to a model")
	}
	return callOf(r).estimate(q), nil
}
