package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
)

const (
	floorName  = "EVALSHA return 1"
	bucketName = "neap bucket"
	windowName = "neap fixed window"
	pipedName  = "neap bucket, AutoPipeline"

	bothName    = "neap set of two"
	logName     = "neap sliding log"
	untimedName = "neap bucket, default client"

	directName       = "neap bucket, direct"
	windowDirectName = "neap fixed window, direct"
	rememberedName   = "neap fixed window, remembered"
	prepaidName      = "neap fixed window, prepaid"
)

// floors are the least that a decision by a script can cost: the same clients call a
// script that does nothing.
func floors() []contestant {
	return []contestant{
		{name: floorName, kind: floor, group: nothing, limiter: openFloor,
			what: "the floor: a script that does nothing, through plain go-redis"},
		{name: floorName + ", AutoPipeline", kind: floor, group: nothing, limiter: openFloor,
			what:   "the same through go-redis' AsyncAutoPipeline, in four batches of some 32 at a time",
			client: pipelined, variantOf: floorName, minGoroutines: manyCallers},
	}
}

func openFloor(ctx context.Context, e *env, _ workload) (take, error) { return scriptOfOne(ctx, e.rdb) }

// scriptOfOne calls a script that does nothing.
func scriptOfOne(ctx context.Context, rdb redis.Scripter) (take, error) {
	sha, err := rdb.ScriptLoad(ctx, "return 1").Result()
	return func(ctx context.Context, key string) (bool, error) {
		return true, rdb.EvalSha(ctx, sha, []string{key}, "1").Err()
	}, err
}

// neaps are neap's own limiters.
func neaps() []contestant {
	return []contestant{
		{name: bucketName, kind: ours, group: bucket, limiter: neapOf(bucket),
			what: "token bucket on the key's time to live"},
		{name: "neap fast bucket", kind: ours, group: bucket, limiter: neapOf(fastBucket), refills: true,
			what: "token bucket of more than a permit a millisecond, on TIME"},
		{name: windowName, kind: ours, group: window, limiter: neapOf(window),
			what: "counter whose time to live is the window"},
		{name: "neap sliding window", kind: ours, group: sliding, limiter: neapOf(sliding),
			what: "two counters in one number"},
		{name: logName, kind: ours, group: history, limiter: neapOf(history),
			what: "list of microseconds"},
		{name: bothName, kind: ours, group: both, limiter: neapOf(bucket, window),
			what: "bucket and fixed window in one script, all or nothing"},
		{name: untimedName, kind: ours, group: bucket, limiter: neapOf(bucket),
			what:   "the bucket on a client without ContextTimeoutEnabled: a lone call takes a goroutine",
			client: untimed, variantOf: bucketName},
		{name: pipedName, kind: ours, group: bucket, limiter: neapOf(bucket),
			what:   "the bucket through the same AsyncAutoPipeline",
			client: pipelined, variantOf: bucketName, minGoroutines: manyCallers},
		{name: directName, kind: ours, group: bucket, limiter: neapOf(bucket),
			what:   "the bucket without neap's queue: each call by itself",
			client: unqueued, variantOf: bucketName},
		{name: windowDirectName, kind: ours, group: window, limiter: neapOf(window),
			what:   "the window without the queue",
			client: unqueued, variantOf: windowName},
		{name: rememberedName, kind: ours, group: window, limiter: neapWith(limit.Options{RememberDenials: 100 * time.Millisecond}, window),
			what:      "the window with RememberDenials of 100 ms",
			variantOf: windowName, only: denied},
		{name: prepaidName, kind: ours, group: window, limiter: neapWith(limit.Options{Prepaid: limit.Prepaid{Most: 4096}}, window),
			what:      "the window with Prepaid of up to 4,096 permits",
			variantOf: windowName, only: admitted},
	}
}

// policies are neap's for each algorithm.
var policies = map[string]func(quota) limit.Policy{
	bucket:     func(q quota) limit.Policy { return limit.TokenBucket{Rate: q.refill, Per: q.window, Burst: q.limit} },
	fastBucket: func(q quota) limit.Policy { return limit.TokenBucket{Rate: 5000, Per: time.Second, Burst: q.limit} },
	window:     func(q quota) limit.Policy { return limit.FixedWindow{Limit: q.limit, Window: q.window} },
	sliding:    func(q quota) limit.Policy { return limit.SlidingWindow{Limit: q.limit, Window: q.window} },
	history:    func(q quota) limit.Policy { return limit.SlidingLog{Limit: q.limit, Window: q.window} },
}

// budget is longer than neap's own: no peer has a deadline, and another process on
// the machine is no outage.
const budget = 5 * time.Second

// neapOf fails closed, so that an outage is never counted as decisions.
func neapOf(algorithms ...string) func(context.Context, *env, workload) (take, error) {
	return neapWith(limit.Options{}, algorithms...)
}

func neapWith(opts limit.Options, algorithms ...string) func(context.Context, *env, workload) (take, error) {
	opts.Budget = budget
	return neapAsIs(opts, algorithms...)
}

// neapAsIs has the default budget if the options have none.
func neapAsIs(opts limit.Options, algorithms ...string) func(context.Context, *env, workload) (take, error) {
	opts.Fail = store.FailClosed
	return func(_ context.Context, e *env, w workload) (take, error) {
		made := make([]limit.Policy, len(algorithms))
		for i, a := range algorithms {
			made[i] = policies[a](w.quota(a))
		}
		st, err := store.Open(e.rdb, &store.Options{Queue: e.queue})
		if err != nil {
			return nil, err
		}
		l, err := limit.New(st, "bench", made, &opts)
		return func(ctx context.Context, key string) (bool, error) {
			d, err := l.Take(ctx, key)
			return d.Allowed, err
		}, err
	}
}
