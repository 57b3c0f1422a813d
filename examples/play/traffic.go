package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
)

const (
	subject = "you"
	recent  = 1000 // requests that are kept for the page
	most    = 20   // requests a second
)

// algorithms and modes are the limiters that decide each request, in the order of the page.
var (
	algorithms = []string{"bucket", "fixed", "sliding", "log"}
	modes      = []mode{{"local", store.FailLocal}, {"open", store.FailOpen}, {"closed", store.FailClosed}}
)

type mode struct {
	name string
	fail store.FailMode
}

// request is one that all limiters have decided. Got is granted, denied or failed, by limiter.
type request struct {
	At       int64    `json:"at"` // milliseconds since the program began
	Got      []string `json:"got"`
	Degraded bool     `json:"degraded"`
}

// rules are what the person at the page has chosen.
type rules struct {
	Limit  int64 `json:"limit"`
	Window int64 `json:"window"` // seconds
	Rate   int64 `json:"rate"`   // requests a second
}

// traffic sends requests, each to all limiters.
type traffic struct {
	began    time.Time
	mu       sync.Mutex
	rules    rules
	made     []*limit.Limiter // as New made them
	limiters []*limit.Limiter // with the policies that were chosen
	first    int64            // the number of the first request that is kept
	requests []request
}

func newTraffic(st *store.Store) (*traffic, error) {
	t := &traffic{began: time.Now()}
	first := rules{Limit: 10, Window: 5, Rate: 3}
	for i, policy := range first.policies() {
		as := mode{fail: store.FailLocal}
		if i < len(algorithms) {
			as.name = algorithms[i]
		} else {
			as = modes[i-len(algorithms)]
		}
		l, err := limit.New(st, as.name, []limit.Policy{policy}, &limit.Options{Fail: as.fail})
		if err != nil {
			return nil, err
		}
		t.made = append(t.made, l)
	}
	return t, t.choose(first)
}

// policies are those of the limiters.
func (r rules) policies() []limit.Policy {
	window := time.Duration(r.Window) * time.Second
	bucket := limit.TokenBucket{Name: "bucket", Rate: r.Limit, Per: window}
	return []limit.Policy{
		bucket, limit.FixedWindow{Name: "fixed", Limit: r.Limit, Window: window},
		limit.SlidingWindow{Name: "sliding", Limit: r.Limit, Window: window}, limit.SlidingLog{Name: "log", Limit: r.Limit, Window: window},
		bucket, bucket, bucket,
	}
}

// choose makes the policies. Those that differ from the ones before begin afresh.
func (t *traffic) choose(r rules) error {
	r.Limit, r.Window, r.Rate = min(max(r.Limit, 1), 50), min(max(r.Window, 1), 60), min(max(r.Rate, 0), most)
	policies := r.policies()
	var limiters []*limit.Limiter
	for i, made := range t.made {
		l, err := made.With(policies[i])
		if err != nil {
			return err
		}
		limiters = append(limiters, l)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules, t.limiters = r, limiters
	return nil
}

// reset gives each limiter's permits back.
func (t *traffic) reset(ctx context.Context) {
	_, limiters := t.chosen()
	for _, l := range limiters {
		_, _ = l.Reset(ctx, subject) // while Redis is stopped it keeps what it has
	}
}

func (t *traffic) chosen() (rules, []*limit.Limiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rules, t.limiters
}

func (t *traffic) now() int64 { return time.Since(t.began).Milliseconds() }

// send sends as many requests a second as were chosen, until it is done.
func (t *traffic) send(done <-chan struct{}) {
	const pause = 100 * time.Millisecond // until a rate of 0 may have changed
	for {
		r, _ := t.chosen()
		wait := pause
		if r.Rate > 0 {
			wait = time.Second / time.Duration(r.Rate)
		}
		select {
		case <-done:
			return
		case <-time.After(wait):
		}
		if r, _ = t.chosen(); r.Rate > 0 { // also now
			go t.ask(context.Background())
		}
	}
}

// ask sends one request to all limiters at once.
func (t *traffic) ask(ctx context.Context) {
	_, limiters := t.chosen()
	one := request{At: t.now(), Got: make([]string, len(limiters))}
	degraded := make([]bool, len(limiters))
	var all sync.WaitGroup
	for i, l := range limiters {
		all.Go(func() {
			d, err := l.Take(ctx, subject)
			switch {
			case err != nil:
				one.Got[i] = "failed"
			case d.Allowed:
				one.Got[i] = "granted"
			default:
				one.Got[i] = "denied"
			}
			degraded[i] = d.Degraded
		})
	}
	all.Wait()
	one.Degraded = slices.Contains(degraded, true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = append(t.requests, one)
	if len(t.requests) > 2*recent {
		t.first += int64(len(t.requests) - recent)
		t.requests = append([]request{}, t.requests[len(t.requests)-recent:]...)
	}
}

// since returns the requests from a number on, and the number of the next.
func (t *traffic) since(n int64) (all []request, next int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next = t.first + int64(len(t.requests))
	return append([]request{}, t.requests[min(max(n, t.first), next)-t.first:]...), next
}

// levels is what each algorithm has left, of a bucket with the part of a token that has dripped in.
func (t *traffic) levels(ctx context.Context) []float64 {
	r, limiters := t.chosen()
	drip := time.Duration(r.Window) * time.Second / time.Duration(r.Limit)
	levels := make([]float64, len(algorithms))
	var all sync.WaitGroup
	for i, l := range limiters[:len(algorithms)] {
		all.Go(func() {
			d, err := l.Peek(ctx, subject)
			if err != nil {
				return
			}
			levels[i] = float64(d.Remaining)
			for s := range d.States() {
				if i == 0 && s.NextAfter > 0 && s.NextAfter <= drip {
					levels[i] += 1 - float64(s.NextAfter)/float64(drip)
				}
			}
		})
	}
	all.Wait()
	return levels
}
