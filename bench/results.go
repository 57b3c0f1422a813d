package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// results are a whole run's.
type results struct {
	plan        plan
	contestants []contestant
	when        time.Time
	host        string
	facts       map[string]facts
	measured    map[cell]samples
}

// host tells what the figures hang on.
func (s *server) host(ctx context.Context) (string, error) {
	info, err := s.info(ctx, "server")
	name, version := "Redis", info["redis_version"]
	if valkey, ok := info["valkey_version"]; ok {
		name, version = "Valkey", valkey
	}
	return fmt.Sprintf("%s/%s, %d cores for server and callers together, %s %s, %s",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), name, version, runtime.Version()), err
}

// version is the one that this program was built with.
func version(module string) string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range build.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return ""
}

// of gathers one figure of a contestant over cells and rounds.
func (r *results) of(name string, figure func(sample) float64, cells ...cell) spread {
	var values []float64
	for _, c := range cells {
		for _, s := range r.measured[c][name] {
			values = append(values, figure(s))
		}
	}
	return spreadOf(values)
}

func (r *results) throughput(name string, c cell) spread {
	return r.of(name, func(s sample) float64 { return s.throughput }, c)
}

// unrest is by how much the floor moved between the rounds of a cell, at worst.
func (r *results) unrest() float64 {
	worst := 1.0
	for _, all := range r.measured {
		slow, fast := all[floorName][0].perSecond, all[floorName][0].perSecond
		for _, s := range all[floorName] {
			slow, fast = min(slow, s.perSecond), max(fast, s.perSecond)
		}
		worst = max(worst, fast/slow)
	}
	return worst
}

// cpu is in microseconds and in floors.
func (r *results) cpu(name string, keys int, denied bool) (usec, floors spread) {
	cells := r.cells(keys, denied)
	return r.of(name, func(s sample) float64 { return s.cpu }, cells...),
		r.of(name, func(s sample) float64 { return s.cpuFloors }, cells...)
}

// allocs are counted where a single goroutine calls.
func (r *results) allocs(name string, denied bool) spread {
	return r.of(name, func(s sample) float64 { return s.allocs }, cell{1, denied, 1})
}

// cells are those of one number of keys, by the number of goroutines.
func (r *results) cells(keys int, denied bool) []cell {
	cells := make([]cell, len(r.plan.goroutines))
	for i, n := range r.plan.goroutines {
		cells[i] = cell{keys, denied, n}
	}
	return cells
}

// busiest is the cell of the most keys and goroutines, where all is admitted.
func (r *results) busiest() cell {
	return cell{r.plan.keys[len(r.plan.keys)-1], false, r.plan.goroutines[len(r.plan.goroutines)-1]}
}

func (c cell) text() string {
	callers := fmt.Sprintf("%d goroutines", c.goroutines)
	if c.goroutines == 1 {
		callers = "1 goroutine"
	}
	return fmt.Sprintf("%s, %s, %s", keysText(c.keys), callers, c.answer())
}
