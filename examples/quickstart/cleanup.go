package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// removeKeys removes the keys under a prefix, and no others: the server may be
// one that other things live on. It does so when ctx has ended too.
func removeKeys(ctx context.Context, rdb redis.UniversalClient, prefix string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	remove := func(ctx context.Context, node *redis.Client) error {
		keys := node.Scan(ctx, 0, prefix+":*", 1000).Iterator()
		for keys.Next(ctx) {
			// One by one: keys of several slots share no command.
			if err := node.Del(ctx, keys.Val()).Err(); err != nil {
				return err
			}
		}
		return keys.Err()
	}
	var err error
	switch rdb := rdb.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, remove)
	case *redis.Client:
		err = remove(ctx, rdb)
	}
	if err != nil {
		return fmt.Errorf("the keys %s:* could not be removed; they expire by themselves: %w", prefix, err)
	}
	return nil
}
