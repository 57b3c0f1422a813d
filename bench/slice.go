package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// metric is one figure of a slice.
type metric string

// What every slice measures. CPU is in microseconds of a call that succeeded.
const (
	calls       metric = "calls that succeeded"
	failed      metric = "calls that failed"
	failedShare metric = "share of the calls that failed"
	seconds     metric = "seconds that the slice took"
	rate        metric = "calls a second"
	commandCPU  metric = "Redis' CPU in commands, by INFO commandstats"
	serverCPU   metric = "CPU of the server, by INFO cpu"
	processCPU  metric = "CPU of this process"
	totalCPU    metric = "CPU of the server and this process"
	allocations metric = "allocations of this process a call"
)

// figures are what one contestant came to in one slice.
type figures map[metric]float64

// load is what a slice consists of: goroutines that call until its time is over, and
// once at least.
type load struct {
	goroutines int
	length     time.Duration
	call       func(ctx context.Context, goroutine int) error
	share      map[string]float64 // of each command, what clients sent
	// mayFail has a call that fails counted. A wrong answer ends the run all the same.
	mayFail bool
}

// errWrong is a call that did another thing than it must.
var errWrong = errors.New("wrong answer")

// slice measures a load. Garbage of the slice before it is collected first.
func (s *server) slice(ctx context.Context, l load) (figures, error) {
	runtime.GC()
	before, err := s.counts(ctx)
	if err != nil {
		return nil, err
	}
	var stop, wrong atomic.Bool
	var running sync.WaitGroup
	faults := make([]error, l.goroutines)
	succeeded, failures := make([]float64, l.goroutines), make([]float64, l.goroutines)
	cpu, mallocs := processUsage()
	start := time.Now()
	timer := time.AfterFunc(l.length, func() { stop.Store(true) })
	defer timer.Stop()
	for i := range l.goroutines {
		running.Go(func() {
			good, bad := 0.0, 0.0 // nothing here is shared: it would slow down what takes 100 ns
			for again := true; again; again = !stop.Load() && !wrong.Load() {
				if err := l.call(ctx, i); err == nil {
					good++
				} else {
					bad++
					faults[i] = err
					wrong.CompareAndSwap(false, !l.mayFail || errors.Is(err, errWrong))
				}
			}
			succeeded[i], failures[i] = good, bad
		})
	}
	running.Wait()
	elapsed := time.Since(start).Seconds()
	cpuAfter, mallocsAfter := processUsage()
	after, err := s.counts(ctx)
	n, lost := sum(succeeded), sum(failures)
	if wrong.Load() || n == 0 {
		err = errors.Join(faults...)
	}
	if err := errors.Join(ctx.Err(), err); err != nil {
		return nil, err
	}
	f := figures{
		calls: n, failed: lost, failedShare: lost / (n + lost), seconds: elapsed, rate: n / elapsed, commandCPU: 0,
		serverCPU: (after.cpu - before.cpu) / n, processCPU: (cpuAfter - cpu) / n,
		allocations: float64(mallocsAfter-mallocs) / n,
	}
	f[totalCPU] = f[serverCPU] + f[processCPU]
	for name, share := range l.share {
		f[commandCPU] += share * (after.commands[name] - before.commands[name]) / n
	}
	return f, nil
}

func sum(all []float64) (total float64) {
	for _, one := range all {
		total += one
	}
	return total
}

// processUsage is what this process has used: CPU in microseconds, and allocations.
func processUsage() (cpu float64, mallocs uint64) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, memory.Mallocs
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3, memory.Mallocs
}
