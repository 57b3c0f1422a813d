package gate_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
)

func ExampleKinds() {
	limiter, err := limit.NewLocal("api", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		panic(err)
	}
	// An adapter for another protocol accepts a gate if it can answer all of these.
	kinds, known := gate.Kinds(gate.RateLimit(limiter, gate.ByIP(nil), nil))
	fmt.Println(known, slices.Contains(kinds, gate.KindLimited), slices.Contains(kinds, gate.KindHeld))
	// Output: true true false
}
