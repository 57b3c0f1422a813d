package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// describe says in words what limits the route.
func (r route) describe() string {
	switch {
	case r.inflight > 0:
		return fmt.Sprintf("at most %d in flight, all clients together", r.inflight)
	case r.exclusive:
		return "one at a time for each X-Order, the others get 409"
	case r.preset != nil:
		return "each event is booked once, and acknowledged then"
	case r.path == "/ledger":
		return "how often each order was booked by this process"
	case r.sells && r.method == "":
		return "how many are left, and sold"
	case r.sells:
		return fmt.Sprintf("%d of the item %s, one for each %s", flashUnits, flashItem, buyerHeader)
	case r.once:
		return "one run for each Idempotency-Key of an X-Api-Key"
	case len(r.shadow) > 0:
		return describe(r.shadow) + ", in the shadow: reported, never enforced"
	case r.count != nil:
		return describe(r.policies) + ", failures alone"
	}
	return describe(r.policies)
}

// describe says in words what policies limit.
func describe(policies []limit.Policy) string {
	if len(policies) == 0 {
		return "no limit"
	}
	words := make([]string, len(policies))
	for i, p := range policies {
		algorithm, numbers := terms(p)
		words[i] = algorithm + ", " + numbers
	}
	return strings.Join(words, " AND ")
}

func terms(p limit.Policy) (algorithm, numbers string) {
	switch p := p.(type) {
	case limit.TokenBucket:
		return "token bucket", fmt.Sprintf("%d per %s, burst %d", p.Rate, unit(p.Per), p.Burst)
	case limit.FixedWindow:
		return "fixed window", fmt.Sprintf("%d in %s", p.Limit, span(p.Window))
	case limit.SlidingWindow:
		return "sliding window", fmt.Sprintf("%d in %s", p.Limit, span(p.Window))
	case limit.SlidingLog:
		return "sliding log", fmt.Sprintf("%d in %s", p.Limit, span(p.Window))
	}
	return "policy", p.PolicyName()
}

func unit(d time.Duration) string {
	if d == time.Second {
		return "second"
	}
	return span(d)
}

func span(d time.Duration) string {
	return fmt.Sprintf("%g s", d.Seconds())
}
