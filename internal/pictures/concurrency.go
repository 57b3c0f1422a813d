package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/svg"
)

const slots = 3

// served is what became of the traffic where each request takes its time.
type served struct {
	course

	stays []stay
	most  int64 // in flight at once
}

// stay is a request in flight.
type stay struct {
	from, to time.Duration
	lane     int // the slots are drawn as lanes; in Redis they have no order
	slot     *inflight.Slot
}

// takes is how long a request runs: most are quick, and each fourth is slow.
func takes(i int) time.Duration {
	if i%4 == 1 {
		return 900 * time.Millisecond
	}
	return 250 * time.Millisecond
}

// serve runs the traffic under a limit on requests in flight.
func serve() (*served, error) {
	var v served
	err := play(func(rdb *redis.Client) (live, error) {
		c, err := inflight.New(rdb, "picture", slots, &inflight.Options{
			Budget: time.Minute, Fail: store.FailClosed,
			Lease: 24 * time.Hour, // no lease is renewed: that would be by another clock
		})
		return func(ctx context.Context, now time.Duration, arrives bool) error {
			for _, s := range v.stays {
				if s.to == now || now == length && s.to > now {
					if err := s.slot.Release(ctx); err != nil {
						return err
					}
				}
			}
			if !arrives {
				return nil
			}
			return v.arrive(ctx, c, now)
		}, err
	})
	return &v, err
}

func (v *served) arrive(ctx context.Context, c *inflight.Limiter, now time.Duration) error {
	slot, err := c.Try(ctx, subject)
	if err != nil {
		return err
	}
	if slot.Allowed {
		v.stays = append(v.stays, stay{now, now + takes(len(v.admitted)), v.lane(now), slot})
	}
	v.admitted = append(v.admitted, slot.Allowed)
	n, err := c.InFlight(ctx, subject)
	v.most = max(v.most, n)
	return err
}

// lane is the first that is free.
func (v *served) lane(now time.Duration) int {
	lane := 0
	for slices.ContainsFunc(v.stays, func(s stay) bool { return s.lane == lane && s.to > now }) {
		lane++
	}
	return lane
}

func concurrencyPicture(v *served) string {
	const requests, top, lane = 92.0, 116.0, 28.0
	title := fmt.Sprintf("Concurrency: %d in flight", slots)
	told := fmt.Sprintf("%d of %d requests let through, never more than %d at once.", v.let(), len(arrivals), v.most)
	bottom := top + lane*slots
	c := newChart(112, bottom+66, title, told+" "+timetable(&v.course))
	c.Text(16, 53, svg.Plain, told+" Some take long.")
	c.requests(&v.course, requests)
	c.named((top+bottom)/2, "slots", "in use")
	bar := func(left, top, right, bottom float64) {
		c.Rect("bar", svg.Box{Left: left, Top: top, Right: right, Bottom: bottom}, 3)
	}
	// They are drawn in the order in which they end. Those that outlast the
	// picture end with it.
	slices.SortStableFunc(v.stays, func(a, b stay) int {
		return cmp.Or(cmp.Compare(min(a.to, length), min(b.to, length)), cmp.Compare(a.lane, b.lane))
	})
	for _, s := range v.stays {
		y := top + lane*float64(s.lane)
		bar(c.at(s.from), y+4, c.at(min(s.to, length)), y+lane-4)
	}
	legend := bottom + 48
	c.axis(bottom, legend)
	x := c.left + 245
	bar(x, legend-11, x+30, legend+2)
	c.Text(x+38, legend, svg.Small, "in flight")
	return c.String()
}
