package guide

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Health is what a server tells about its scripts, since it was started.
type Health struct {
	Calls   int64         // of EVALSHA
	EachFor time.Duration // of the server's time
	Refused int64         // EVALSHA of scripts that it did not know
	Full    int64         // commands, since the memory was full
	Evicted int64         // keys, for others to have room
	Scripts int64         // that it keeps
}

// Watch asks a server how its scripts do. It costs one round trip.
func Watch(ctx context.Context, rdb *redis.Client) (h Health, err error) {
	info, err := rdb.InfoMap(ctx, "everything").Result()
	if err != nil {
		return h, err
	}
	if line := info["Commandstats"]["cmdstat_evalsha"]; line != "" {
		var each float64
		if _, err := fmt.Sscanf(line, "calls=%d,usec=%d,usec_per_call=%g", &h.Calls, new(int64), &each); err != nil {
			return h, err
		}
		h.EachFor = time.Duration(each * float64(time.Microsecond))
	}
	errors := info["Errorstats"]
	h.Refused = number(strings.TrimPrefix(errors["errorstat_NOSCRIPT"], "count="))
	h.Full = number(strings.TrimPrefix(errors["errorstat_OOM"], "count="))
	h.Evicted = number(info["Stats"]["evicted_keys"])
	h.Scripts = number(info["Memory"]["number_of_cached_scripts"])
	return h, nil
}

// number is 0 of what the server does not tell.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
