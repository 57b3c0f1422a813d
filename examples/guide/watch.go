package guide

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Health has the figures of a server about its scripts, since the server was started.
type Health struct {
	Calls   int64         // of EVALSHA
	EachFor time.Duration // the server's time for each call
	Refused int64         // EVALSHA of scripts that the server did not know
	Full    int64         // commands that were refused because memory was full
	Evicted int64         // keys that were removed to make room
	Scripts int64         // that the server keeps
}

// Watch asks a server for the figures of its scripts. It costs one round trip.
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

// number returns 0 for a figure that the server does not have.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
