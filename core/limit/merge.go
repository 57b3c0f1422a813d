package limit

import (
	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

// manyScript decides the requests of several callers in one process under one policy.
var manyScript = script.FromFS(lua.FS, "limit_many.lua")

// manyNumbers is how many numbers of a policy the script takes.
const manyNumbers = 4

func merging(kind string, next func(numbers []int64, state, cost int64) int64) *wire.Merging {
	return &wire.Merging{Script: (*wire.Script)(manyScript), Kind: kind, Numbers: manyNumbers, Next: next}
}

// mergedBy returns the script of a file, whose calls may be merged.
func mergedBy(by *wire.Merging, file string) *script.Script {
	return (*script.Script)((*wire.Script)(script.FromFS(lua.FS, file)).MergedBy(by))
}

var (
	bucketMerging     = merging("bucket", nextBucket)
	fastBucketMerging = merging("bucket_fast", nextBucket)
	windowMerging     = merging("window", nextWindow)
	slidingMerging    = merging("sliding", nextSliding)
)

// signDenied returns how a script replies that it denied a cost in a state.
func signDenied(state int64) int64 { return -1 - state }

// nextBucket replies as limit_bucket.lua and limit_bucket_fast.lua do: with the debt.
func nextBucket(numbers []int64, debt, cost int64) int64 {
	if capacity := numbers[0]; cost > capacity-debt {
		return signDenied(debt)
	}
	return debt + cost
}

// nextWindow replies as limit_window.lua does.
func nextWindow(numbers []int64, state, cost int64) int64 {
	limit, length := numbers[0], numbers[1]
	switch used, rest := state%(limit+1), state/(limit+1); {
	case cost == 0:
		return state
	case used+cost > limit:
		return signDenied(state)
	case rest == 0:
		return length*(limit+1) + used + cost
	}
	return state + cost
}

// nextSliding replies as limit_sliding.lua does.
func nextSliding(numbers []int64, state, cost int64) int64 {
	limit, length := numbers[0], numbers[1]
	counters, rest := state/(length+1), state%(length+1)
	last, current := counters/(limit+1), counters%(limit+1)
	switch {
	case cost == 0:
		return state
	case last*rest+(current+cost)*length > limit*length:
		return signDenied(state)
	case rest == 0:
		rest = length
	}
	return (last*(limit+1)+current+cost)*(length+1) + rest
}
