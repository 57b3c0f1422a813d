package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

const floorName = "EVALSHA return 1"

// theFloor is the least that a decision by a script can cost: the same client
// calls a script that does nothing.
func theFloor() contestant {
	return contestant{
		name: floorName, what: "the floor: a script that does nothing, through plain go-redis",
		kind: floor, algorithm: nothing,
		open: func(ctx context.Context, e env, _ workload) (*limiter, error) {
			rdb := e.client()
			take, err := floorTake(ctx, rdb)
			return &limiter{take: take, close: rdb.Close}, err
		},
	}
}

// theFloorPipelined tells what AutoPipeline gives, whoever calls through it.
func theFloorPipelined() contestant {
	return contestant{
		name: floorName + ", AutoPipeline", what: "the same through go-redis' AsyncAutoPipeline, in four batches of some 32 at a time",
		kind: floor, algorithm: nothing, twin: floorName, crowd: true,
		open: func(ctx context.Context, e env, _ workload) (*limiter, error) {
			pipe, closeAll, err := e.pipeline()
			if err != nil {
				return nil, err
			}
			take, err := floorTake(ctx, pipe)
			return &limiter{take: take, close: closeAll}, err
		},
	}
}

func floorTake(ctx context.Context, rdb redis.Scripter) (func(context.Context, string) (bool, error), error) {
	sha, err := rdb.ScriptLoad(ctx, "return 1").Result()
	return func(ctx context.Context, key string) (bool, error) {
		return true, rdb.EvalSha(ctx, sha, []string{key}, "1").Err()
	}, err
}
