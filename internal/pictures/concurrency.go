package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/svg"
)

const slots = 3

// served is what became of the traffic where each request takes its time.
type served struct {
	course
	stays   []stay
	running [slots]*stay
	most    int64
}

// stay is a request in flight.
type stay struct {
	from, to time.Duration
	lane     int // the slots are drawn as lanes; in Redis they have no order
	slot     *limit.Slot
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
	var c *limit.Concurrency
	err := clock(func(ctx context.Context, rdb *redis.Client, now time.Duration) (err error) {
		if c == nil { // no lease is to be renewed by another clock than this one
			c, err = limit.NewConcurrency(rdb, "picture", slots, &limit.ConcurrencyOptions{
				Budget: time.Minute, Fail: limit.FailClosed, Lease: 24 * time.Hour,
			})
			if err != nil {
				return err
			}
		}
		if err := v.leave(ctx, now); err != nil {
			return err
		}
		if i := len(v.admitted); i < len(arrivals) && arrivals[i] == now {
			if err := v.arrive(ctx, c, now); err != nil {
				return err
			}
		}
		n, err := c.InFlight(ctx, subject)
		v.most = max(v.most, n)
		if now == length {
			err = errors.Join(err, v.leave(ctx, 2*length))
		}
		return err
	})
	return &v, err
}

// leave ends what is through by now.
func (v *served) leave(ctx context.Context, now time.Duration) error {
	for lane, s := range v.running {
		if s == nil || s.to > now {
			continue
		}
		if err := s.slot.Release(ctx); err != nil {
			return err
		}
		v.stays = append(v.stays, *s)
		v.running[lane] = nil
	}
	return nil
}

func (v *served) arrive(ctx context.Context, c *limit.Concurrency, now time.Duration) error {
	slot, err := c.Try(ctx, subject)
	if err != nil {
		return err
	}
	v.admitted = append(v.admitted, slot.Allowed)
	if !slot.Allowed {
		return nil
	}
	lane := slices.Index(v.running[:], nil)
	if lane < 0 {
		return errors.New("more are in flight than the limit")
	}
	v.running[lane] = &stay{now, now + takes(len(v.admitted)-1), lane, slot}
	return nil
}

func concurrencyPicture(v *served) string {
	const marks, top, lane = 92.0, 116.0, 28.0
	title := fmt.Sprintf("Concurrency: %d in flight", slots)
	told := fmt.Sprintf("%d of %d requests let through, never more than %d at once.", v.let(), len(arrivals), v.most)
	bottom := top + lane*slots
	d := svg.New(wide, bottom+66, title, told+" "+timetable(&v.course))
	s := scale{112}
	d.Text(16, 30, svg.Title, title)
	d.Text(16, 53, svg.Plain, told+" Some take long.")
	d.Text(s.left-16, marks+5, svg.Plain+" end", "requests")
	mark(d, s, &v.course, marks, 4.2)
	d.Text(s.left-16, (top+bottom)/2-3, svg.Plain+" end", "slots")
	d.Text(s.left-16, (top+bottom)/2+14, svg.Plain+" end", "in use")
	for _, in := range v.stays {
		y := top + lane*float64(in.lane)
		d.Rect("bar", svg.Box{Left: s.at(in.from), Top: y + 4, Right: s.at(min(in.to, length)), Bottom: y + lane - 4}, 3)
	}
	seconds(d, s, bottom)
	legend(d, s.left, bottom+48)
	x := s.left + 245
	d.Rect("bar", svg.Box{Left: x, Top: bottom + 37, Right: x + 30, Bottom: bottom + 50}, 3)
	d.Text(x+38, bottom+48, svg.Small, "in flight")
	return d.String()
}
