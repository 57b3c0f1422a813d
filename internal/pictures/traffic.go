package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
)

const (
	permits = 5
	window  = time.Second
	length  = 4 * time.Second
	tick    = 10 * time.Millisecond
	subject = "somebody"
)

// arrivals is when the requests come: one that begins the first window, bursts
// on both sides of its end, and after a pause more than the limit for good.
var arrivals = slices.Concat(
	[]time.Duration{0},
	every(70*time.Millisecond, 620*time.Millisecond, 5),
	every(70*time.Millisecond, 1050*time.Millisecond, 6),
	every(140*time.Millisecond, 2200*time.Millisecond, 13),
)

func every(pause, from time.Duration, n int) (all []time.Duration) {
	for i := range n {
		all = append(all, from+time.Duration(i)*pause)
	}
	return all
}

// course is what became of the traffic.
type course struct {
	admitted []bool          // of each arrival
	left     []int64         // permits that were left, at each tick
	ends     []time.Duration // when nothing would be in use any more; of windows, where they end
}

// let is how many were let through.
func (c *course) let() (n int) {
	for _, yes := range c.admitted {
		if yes {
			n++
		}
	}
	return n
}

// busiest is the time as long as a window in which most were let through.
func (c *course) busiest() (from time.Duration, most int) {
	for i, yes := range c.admitted {
		n := 0
		for j := i; yes && j < len(arrivals) && arrivals[j] < arrivals[i]+window; j++ {
			if c.admitted[j] {
				n++
			}
		}
		if n > most {
			from, most = arrivals[i], n
		}
	}
	return from, most
}

// live is a moment of the traffic: arrives says whether a request does.
type live func(ctx context.Context, now time.Duration, arrives bool) error

// play lives through the traffic on an embedded Redis, a tick at a time.
func play(begin func(rdb *redis.Client) (live, error)) error {
	server, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer server.Close()
	server.ClockTTL(true)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer rdb.Close()
	at, err := begin(rdb)
	for now := time.Duration(0); err == nil && now <= length; now += tick {
		server.SetTime(time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC).Add(now))
		if err = at(context.Background(), now, slices.Contains(arrivals, now)); err != nil {
			err = fmt.Errorf("at %v: %w", now, err)
		}
	}
	return err
}

// run sends the traffic through a limiter.
func run(p limit.Policy) (*course, error) {
	c, ends := &course{}, map[time.Duration]bool{}
	err := play(func(rdb *redis.Client) (live, error) {
		limiter, err := limit.New(rdb, "picture", []limit.Policy{p},
			&limit.Options{Budget: time.Minute, Fail: store.FailClosed})
		return func(ctx context.Context, now time.Duration, arrives bool) error {
			if arrives {
				d, err := limiter.Take(ctx, subject)
				if err != nil {
					return err
				}
				c.admitted = append(c.admitted, d.Allowed)
			}
			d, err := limiter.Peek(ctx, subject)
			c.left = append(c.left, d.Remaining)
			if d.ResetAfter > 0 {
				end := now + d.ResetAfter
				ends[end] = true
				if _, ok := p.(limit.SlidingWindow); ok && end > window { // which counts for two windows
					ends[end-window] = true
				}
			}
			return err
		}, err
	})
	c.ends = slices.Sorted(maps.Keys(ends))
	return c, err
}
