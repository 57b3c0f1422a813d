package backend

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Keys are those that match a pattern, on every master of a cluster.
func Keys(ctx context.Context, rdb redis.UniversalClient, pattern string) (keys []string, err error) {
	var mu sync.Mutex
	scan := func(ctx context.Context, node *redis.Client) error {
		found := node.Scan(ctx, 0, pattern, 1000).Iterator()
		mu.Lock()
		defer mu.Unlock()
		for found.Next(ctx) {
			keys = append(keys, found.Val())
		}
		return found.Err()
	}
	switch rdb := rdb.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, scan)
	case *redis.Client:
		err = scan(ctx, rdb)
	default:
		err = fmt.Errorf("the keys of a %T cannot be listed", rdb)
	}
	return keys, err
}

// RemoveKeys removes the keys under a prefix, and no others: the server may be
// one that other things live on. It does so when ctx has ended too.
func RemoveKeys(ctx context.Context, rdb redis.UniversalClient, prefix string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	keys, err := Keys(ctx, rdb, prefix+":*")
	for _, key := range keys { // one by one: keys of several slots share no command
		if err == nil {
			err = rdb.Del(ctx, key).Err()
		}
	}
	if err != nil {
		return fmt.Errorf("the keys %s:* could not be removed; they expire by themselves: %w", prefix, err)
	}
	return nil
}
