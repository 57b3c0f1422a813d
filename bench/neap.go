package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
)

const (
	bucketName = "neap bucket"
	pipedName  = "neap bucket, AutoPipeline"
)

func neaps() []contestant {
	return []contestant{
		neap(bucketName, "token bucket on the key's time to live", bucket, bucketPolicy),
		fastBucket(),
		neap("neap fixed window", "counter whose time to live is the window", window, windowPolicy),
		neap("neap sliding window", "two counters in one number", sliding, slidingPolicy),
		neap("neap sliding log", "list of microseconds", history, logPolicy),
		neap("neap set of two", "bucket and fixed window in one script, all or nothing", both, bucketPolicy, windowPolicy),
		{
			name: "neap bucket, default client", what: "the bucket on a client without ContextTimeoutEnabled: a goroutine a call",
			kind: ours, algorithm: bucket, twin: bucketName,
			open: func(_ context.Context, e env, w workload) (*limiter, error) {
				rdb := redis.NewClient(&redis.Options{Addr: e.addr, DB: e.db, PoolSize: conns()})
				return neapOn(rdb, rdb.Close, bucketPolicy(w))
			},
		},
		{
			name: pipedName, what: "the bucket through the same AsyncAutoPipeline",
			kind: ours, algorithm: bucket, twin: bucketName, crowd: true,
			open: func(_ context.Context, e env, w workload) (*limiter, error) {
				pipe, closeAll, err := e.pipeline()
				if err != nil {
					return nil, err
				}
				return neapOn(pipe, closeAll, bucketPolicy(w))
			},
		},
	}
}

func neap(name, what string, a algorithm, policies ...func(workload) limit.Policy) contestant {
	return contestant{
		name: name, what: what, kind: ours, algorithm: a,
		open: func(_ context.Context, e env, w workload) (*limiter, error) {
			rdb := e.client()
			made := make([]limit.Policy, len(policies))
			for i, policy := range policies {
				made[i] = policy(w)
			}
			return neapOn(rdb, rdb.Close, made...)
		},
	}
}

func fastBucket() contestant {
	c := neap("neap fast bucket", "token bucket of more than a permit a millisecond, on TIME", bucket,
		func(w workload) limit.Policy {
			return limit.TokenBucket{Rate: 5000, Per: time.Second, Burst: w.quota(bucket).limit}
		})
	c.refills = true
	return c
}

// budget is longer than neap's own: no peer has a deadline, and another
// process on the machine is no outage.
const budget = time.Second

// neapOn fails closed, so that no decision is counted that Redis did not make.
func neapOn(rdb script.Client, closeAll func() error, policies ...limit.Policy) (*limiter, error) {
	l, err := limit.New(rdb, "bench", policies, &limit.Options{Budget: budget, Fail: limit.FailClosed})
	if err != nil {
		return nil, errors.Join(err, closeAll())
	}
	return &limiter{
		take: func(ctx context.Context, key string) (bool, error) {
			d, err := l.Take(ctx, key)
			return d.Allowed, err
		},
		close: closeAll,
	}, nil
}

func bucketPolicy(w workload) limit.Policy {
	q := w.quota(bucket)
	return limit.TokenBucket{Rate: q.refill, Per: q.window, Burst: q.limit}
}

func windowPolicy(w workload) limit.Policy {
	q := w.quota(window)
	return limit.FixedWindow{Limit: q.limit, Window: q.window}
}

func slidingPolicy(w workload) limit.Policy {
	q := w.quota(sliding)
	return limit.SlidingWindow{Limit: q.limit, Window: q.window}
}

func logPolicy(w workload) limit.Policy {
	q := w.quota(history)
	return limit.SlidingLog{Limit: q.limit, Window: q.window}
}
