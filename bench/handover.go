package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A hand-over: so many workers want one lock, each has it for hold and then
// does without for think.
const (
	workers = 8
	hold    = time.Millisecond
	think   = 2 * time.Millisecond
)

// tenure is what one slice of hand-overs came to.
type tenure struct {
	held   float64 // the share of the time in which somebody had the lock
	p50    float64 // of the waits, in milliseconds
	p99    float64
	most   float64
	least  float64 // of a worker, in fair shares
	best   float64
	cpu    float64 // microseconds of Redis' time a hand-over
	rate   float64 // hand-overs a second
	failed int64
}

// pairs is what acquiring and releasing without contention came to.
type pairs struct {
	rate  map[int]float64 // by goroutines, each on a key of its own
	trips float64
}

type lockResults struct {
	host     string
	when     time.Time
	rounds   int
	slice    time.Duration
	all      []locking
	together map[string][]tenure // workers of one process
	apart    map[string][]tenure // each worker with a client of its own
	alone    map[string][]pairs
}

// crowds are how many goroutines acquire and release, each its own key.
var crowds = []int{1, 16}

func (s *server) measureLocks(ctx context.Context, rounds int, slice time.Duration, progress io.Writer) (*lockResults, error) {
	host, err := s.host(ctx)
	r := &lockResults{
		host: host, when: time.Now(), rounds: rounds, slice: slice, all: lockings(),
		together: map[string][]tenure{}, apart: map[string][]tenure{}, alone: map[string][]pairs{},
	}
	for round := range rounds {
		for _, i := range rand.Perm(len(r.all)) {
			c := r.all[i]
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(progress, "round %d of locks: %s\n", round+1, c.name)
			var one, many tenure
			var free pairs
			one, err = s.handOver(ctx, c, i, 1, slice)
			if err == nil {
				many, err = s.handOver(ctx, c, i, workers, slice)
			}
			if err == nil {
				free, err = s.uncontended(ctx, c, i, slice/4)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", c.name, err)
			}
			r.together[c.name] = append(r.together[c.name], one)
			r.apart[c.name] = append(r.apart[c.name], many)
			r.alone[c.name] = append(r.alone[c.name], free)
		}
	}
	return r, err
}

// openLocks opens a contestant for so many processes.
func openLocks(c locking, e env, processes int) (all []*mutexes, closeAll func() error, err error) {
	closeAll = func() (err error) {
		for _, m := range all {
			err = errors.Join(err, m.close())
		}
		return err
	}
	for range processes {
		m, err := c.open(e)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		all = append(all, m)
	}
	return all, closeAll, nil
}

// handOver has the workers hand one lock to each other, and ends the run when
// two have it.
func (s *server) handOver(ctx context.Context, c locking, db, processes int, d time.Duration) (t tenure, err error) {
	all, closeAll, err := openLocks(c, env{s.addr, db}, processes)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()

	const key = "hand-over"
	var holders, failed, broken atomic.Int64
	var held atomic.Int64
	waits := make([][]float64, workers)
	work := func(until time.Time) error {
		var done sync.WaitGroup
		faults := make([]error, workers)
		for i := range workers {
			done.Go(func() {
				for time.Now().Before(until) && faults[i] == nil {
					asked := time.Now()
					release, err := all[i%processes].acquire(ctx, key)
					if err != nil {
						failed.Add(1)
						continue
					}
					got := time.Now()
					if holders.Add(1) != 1 {
						broken.Add(1)
					}
					time.Sleep(hold)
					holders.Add(-1)
					held.Add(int64(time.Since(got)))
					waits[i] = append(waits[i], milliseconds(got.Sub(asked)))
					faults[i] = release()
					time.Sleep(think)
				}
			})
		}
		done.Wait()
		return errors.Join(faults...)
	}
	if err := work(time.Now().Add(d / 10)); err != nil { // connects
		return t, err
	}
	clear(waits)
	held.Store(0)
	before, err := s.busy(ctx)
	if err != nil {
		return t, err
	}
	began := time.Now()
	if err := work(began.Add(d)); err != nil {
		return t, err
	}
	elapsed := time.Since(began)
	after, err := s.busy(ctx)
	if err != nil {
		return t, err
	}
	if broken.Load() > 0 {
		return t, fmt.Errorf("two had the lock at once, %d times", broken.Load())
	}
	every := slices.Concat(waits...)
	if len(every) == 0 {
		return t, errors.New("nobody got the lock")
	}
	slices.Sort(every)
	n := float64(len(every))
	t = tenure{
		held: float64(held.Load()) / float64(elapsed), p50: quantile(every, 0.5), p99: quantile(every, 0.99), most: every[len(every)-1],
		least: n, cpu: (after - before) / n, rate: n / elapsed.Seconds(), failed: failed.Load(),
	}
	for _, own := range waits {
		share := float64(len(own)) * workers / n
		t.least, t.best = min(t.least, share), max(t.best, share)
	}
	return t, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// busy is the server's time on the processor, in microseconds.
func (s *server) busy(ctx context.Context) (float64, error) {
	info, err := s.info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	user, err1 := strconv.ParseFloat(info["used_cpu_user"], 64)
	sys, err2 := strconv.ParseFloat(info["used_cpu_sys"], 64)
	return (user + sys) * 1e6, errors.Join(err1, err2)
}

func (s *server) uncontended(ctx context.Context, c locking, db int, d time.Duration) (p pairs, err error) {
	all, closeAll, err := openLocks(c, env{s.addr, db}, 1)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	pair := func(key string) error {
		release, err := all[0].acquire(ctx, key)
		if err != nil {
			return err
		}
		return release()
	}
	ask := func(goroutines int, d time.Duration) (float64, error) {
		var done sync.WaitGroup
		var n atomic.Int64
		faults := make([]error, goroutines)
		began := time.Now()
		for i := range goroutines {
			done.Go(func() {
				for key := fmt.Sprintf("alone-%d", i); time.Since(began) < d && faults[i] == nil; n.Add(1) {
					faults[i] = pair(key)
				}
			})
		}
		done.Wait()
		return float64(n.Load()) / time.Since(began).Seconds(), errors.Join(faults...)
	}
	p.rate = map[int]float64{}
	for _, goroutines := range crowds {
		if _, err := ask(goroutines, d/5); err != nil {
			return p, err
		}
		if p.rate[goroutines], err = ask(goroutines, d); err != nil {
			return p, err
		}
	}
	heard, err := s.watch(ctx, db, func() error {
		for range probes {
			if err := pair("alone-0"); err != nil {
				return err
			}
		}
		return nil
	})
	p.trips = float64(len(heard.outer)) / probes
	return p, err
}
