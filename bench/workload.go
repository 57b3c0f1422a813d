package main

import "time"

// The algorithms, which are the groups of the limiters.
const (
	bucket  = "bucket"
	window  = "fixed window"
	sliding = "sliding window"
	history = "log"
	both    = "bucket and window"
	nothing = "none"

	fastBucket = "fast bucket" // of more than a permit a millisecond; its group is bucket
)

// workload is what limiters are asked for, each in its own terms.
type workload string

const (
	hotKey   workload = "admits whatever is sent, on one hot key"
	manyKeys workload = "admits whatever is sent, on many keys"
	single   workload = "admits one request of each key"
	five     workload = "admits 5 a day"
	thousand workload = "admits 1,000 a day"
	usual    workload = "limits as services have them"
)

// quota is a limit: so many in a window. A bucket holds limit, and refill come back
// in each window.
type quota struct {
	limit, refill int64
	window        time.Duration
}

const day = 24 * time.Hour

// quotas are by algorithm; the one without is of all others.
//
// A log keeps every request: of a hot key those of a few milliseconds. A log that
// goes by the callers' clocks denies a caller that lost the processor for as long as
// the limit takes to fill.
var quotas = map[workload]map[string]quota{
	hotKey: {
		bucket:  {limit: 1e9, refill: 100, window: time.Second},
		sliding: {limit: 1e6, window: time.Second},
		history: {limit: 10_000, window: 5 * time.Millisecond},
		"":      {limit: 1e9, window: time.Hour},
	},
	manyKeys: {
		bucket:  {limit: 1e9, refill: 100, window: time.Second},
		sliding: {limit: 1e6, window: time.Second},
		history: {limit: 1000, window: time.Hour},
		"":      {limit: 1e9, window: time.Hour},
	},
	single:   {"": {limit: 1, refill: 1, window: day}},
	thousand: {"": {limit: 1000, refill: 1000, window: day}},
	five:     {"": {limit: 5, refill: 5, window: day}},
	usual: {
		bucket:     {limit: 20, refill: 10, window: time.Minute},
		fastBucket: {limit: 20},
		history:    {limit: 5, window: 10 * time.Minute},
		"":         {limit: 1000, window: time.Hour},
	},
}

func (w workload) quota(algorithm string) quota {
	if q, ok := quotas[w][algorithm]; ok {
		return q
	}
	return quotas[w][""]
}
