package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// cell is one way of asking all contestants.
type cell struct {
	keys       int
	denied     bool
	goroutines int
}

// sample is what one contestant came to in one round, beside the floor of
// that round.
type sample struct {
	throughput float64 // in floors
	perSecond  float64
	cpu        float64 // microseconds of the server's time a decision
	cpuFloors  float64 // the same in floors
	allocs     float64 // beyond the floor's; with one goroutine
	errors     float64 // a share of the calls
}

// slice is what a contestant did in one slice of time.
type slice struct {
	decisions, wrong, failed int64
	elapsed                  time.Duration
	cpu                      float64 // microseconds, all decisions together
	mallocs                  uint64
	fault                    error // one of them
}

// entry is a contestant at work in one cell.
type entry struct {
	contestant
	*limiter
	share map[string]float64
}

// run asks one entry for the time of a slice.
func (s *server) run(ctx context.Context, e *entry, keys []string, c cell, d time.Duration) (slice, error) {
	runtime.GC()
	before, err := s.counts(ctx)
	if err != nil {
		return slice{}, err
	}
	var stop atomic.Bool
	var done sync.WaitGroup
	parts := make([]slice, c.goroutines)
	var memory, memoryAfter runtime.MemStats
	runtime.ReadMemStats(&memory)
	start := time.Now()
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	defer timer.Stop()
	for i := range parts {
		done.Go(func() { parts[i] = e.ask(ctx, keys, c.denied, &stop) })
	}
	done.Wait()
	total := slice{elapsed: time.Since(start)}
	runtime.ReadMemStats(&memoryAfter)
	total.mallocs = memoryAfter.Mallocs - memory.Mallocs
	after, err := s.counts(ctx)
	if err != nil {
		return slice{}, err
	}
	for name, share := range e.share {
		total.cpu += share * (after.usec[name] - before.usec[name])
	}
	for _, p := range parts {
		total.decisions += p.decisions
		total.wrong += p.wrong
		total.failed += p.failed
		if p.fault != nil {
			total.fault = p.fault
		}
	}
	return total, total.check(ctx, e.name, c)
}

// ask takes at least once, and until it is stopped.
func (e *entry) ask(ctx context.Context, keys []string, denied bool, stop *atomic.Bool) slice {
	var s slice
	for {
		allowed, err := e.take(ctx, keys[rand.IntN(len(keys))])
		switch {
		case err != nil:
			s.failed++
			s.fault = err
		case allowed == denied && e.kind != floor:
			s.wrong++
		default:
			s.decisions++
		}
		if stop.Load() {
			return s
		}
	}
}

// check refuses to measure a contestant that answers wrongly or not at all.
func (s slice) check(ctx context.Context, name string, c cell) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.wrong > 0:
		return fmt.Errorf("%s gave %d wrong answers where every request must be %s", name, s.wrong, c.answer())
	case s.decisions == 0:
		return fmt.Errorf("%s made no decision; %d failed: %w", name, s.failed, s.fault)
	}
	return nil
}

func (c cell) answer() string {
	if c.denied {
		return "denied"
	}
	return "admitted"
}

// floorEvery is how many contestants come between two slices of the floor.
const floorEvery = 4

// round asks every entry once, in an order of its own, and the floor, which is
// the first of them, again and again in between.
func (s *server) round(
	ctx context.Context, entries []*entry, keys []string, c cell, d time.Duration,
) (map[string]sample, error) {
	base := entries[0]
	others := append([]*entry(nil), entries[1:]...)
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	order := []*entry{base}
	for i, e := range others {
		order = append(order, e)
		if i%floorEvery == floorEvery-1 || i == len(others)-1 {
			order = append(order, base)
		}
	}
	slices := map[string][]slice{}
	for _, e := range order {
		one, err := s.run(ctx, e, keys, c, d)
		if err != nil {
			return nil, err
		}
		slices[e.name] = append(slices[e.name], one)
	}
	under := floorOf(slices[base.name])
	samples := map[string]sample{base.name: beside(under, under)}
	for _, e := range others {
		samples[e.name] = beside(figuresOf(slices[e.name][0]), under)
	}
	return samples, nil
}

// figures are a slice's, each decision.
type figures struct{ perSecond, cpu, mallocs, errors float64 }

func figuresOf(s slice) figures {
	n := float64(s.decisions)
	return figures{
		perSecond: n / s.elapsed.Seconds(), cpu: s.cpu / n, mallocs: float64(s.mallocs) / n,
		errors: float64(s.failed) / (n + float64(s.failed)),
	}
}

// floorOf is the median of a round's slices of the floor.
func floorOf(all []slice) figures {
	var perSecond, cpu, mallocs, failed []float64
	for _, s := range all {
		f := figuresOf(s)
		perSecond, cpu = append(perSecond, f.perSecond), append(cpu, f.cpu)
		mallocs, failed = append(mallocs, f.mallocs), append(failed, f.errors)
	}
	return figures{spreadOf(perSecond).median, spreadOf(cpu).median, spreadOf(mallocs).median, spreadOf(failed).median}
}

func beside(f, under figures) sample {
	return sample{
		throughput: f.perSecond / under.perSecond, perSecond: f.perSecond,
		cpu: f.cpu, cpuFloors: f.cpu / under.cpu,
		allocs: f.mallocs - under.mallocs, errors: f.errors,
	}
}
