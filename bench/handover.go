package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// The ways of asking a locker.
const (
	together way = "hand-over in one process"
	apart    way = "hand-over between processes"
	crowded  way = "hand-over between processes of ten goroutines"
	alone    way = "acquire and release, each its own key"
)

// In a hand-over the workers want one lock. Each has it for hold, and then does without it
// for think.
const (
	hold  = time.Millisecond
	think = 2 * time.Millisecond
)

// each is how many goroutines a process has where it has several.
const each = 10

var (
	handOver     = cell{way: together, goroutines: 8}
	handOverFar  = cell{way: apart, goroutines: 8}
	handOversFar = []cell{handOverFar, {way: apart, goroutines: 2}, {way: apart, goroutines: 32}, {way: crowded, goroutines: 8 * each}}
)

// processes returns how many processes the workers of a cell are in.
func (c cell) processes() int {
	switch c.way {
	case apart:
		return c.goroutines
	case crowded:
		return c.goroutines / each
	default:
		return 1
	}
}

// What a hand-over measures besides. Waits are in milliseconds, and the workers'
// shares in fair shares.
const (
	heldPercent metric = "% of the time in which the lock is held"
	p50         metric = "median of the waits"
	p99         metric = "99 % of the waits"
	longest     metric = "longest wait"
	smallest    metric = "smallest share of a worker"
	largest     metric = "largest share of a worker"
)

// locks measures LOCKS.md. A contestant is opened for each slice, so that it does nothing
// in the slices of others.
func (s *server) locks(ctx context.Context, r *results) error {
	r.contestants = lockers()
	cells := slices.Concat([]cell{handOver}, handOversFar, r.plan.cells(0, alone))
	return s.measure(ctx, r, r.contestants, cells, func(c contestant, e *env) (slicer, error) {
		open := func(e *env) (acquire, error) { return c.locker(ctx, e) }
		err := instances(s, c, e.db, 1, open, func(_ *env, all []acquire) error {
			if err := pair(ctx, all[0], "facts"); err != nil { // loads the scripts
				return err
			}
			sends, err := s.probe(ctx, e.db, func(int) error { return pair(ctx, all[0], "facts") })
			r.facts[c.name] = facts{sends: map[way]sent{alone: sends}}
			return err
		})
		return func(ctx context.Context, at cell, length time.Duration) (f figures, err error) {
			err = instances(s, c, e.db, at.processes(), open, func(_ *env, all []acquire) error {
				f, err = s.lockSlice(ctx, all, at, length)
				return err
			})
			return f, err
		}, err
	})
}

// lockSlice measures when a tenth of the length has opened the connections. Pairs vary
// less than hand-overs, and take a quarter of their time.
func (s *server) lockSlice(ctx context.Context, all []acquire, at cell, length time.Duration) (figures, error) {
	h := handOvers{all: all, waits: make([][]float64, at.goroutines)}
	l := load{goroutines: at.goroutines, length: length, mayFail: true, call: h.call}
	if at.way == alone {
		l.length, l.mayFail = length/4, false
		l.call = func(ctx context.Context, i int) error { return pair(ctx, all[0], "alone-"+strconv.Itoa(i)) }
	}
	short := l
	short.length /= 10
	if _, err := s.slice(ctx, short); err != nil {
		return nil, err
	}
	h.reset()
	f, err := s.slice(ctx, l)
	if err == nil && at.way != alone {
		h.figures(f)
	}
	return f, err
}

func pair(ctx context.Context, acquire acquire, key string) error {
	release, err := acquire(ctx, key)
	if err != nil {
		return err
	}
	return release()
}

// handOvers are what the workers do with one lock.
type handOvers struct {
	all     []acquire // of each process
	holders atomic.Int64
	held    atomic.Int64 // nanoseconds
	waits   [][]float64  // of each worker
}

// call is one hand-over. Two that have the lock at once end the run.
func (h *handOvers) call(ctx context.Context, worker int) error {
	asked := time.Now()
	release, err := h.all[worker%len(h.all)](ctx, "hand-over")
	if err != nil {
		return err
	}
	got := time.Now()
	holders := h.holders.Add(1)
	time.Sleep(hold)
	h.holders.Add(-1)
	h.held.Add(int64(time.Since(got)))
	h.waits[worker] = append(h.waits[worker], float64(got.Sub(asked))/float64(time.Millisecond))
	if err := release(); err != nil {
		return fmt.Errorf("%w: %w", errWrong, err)
	}
	if holders > 1 {
		return fmt.Errorf("%w: two had the lock at once", errWrong)
	}
	time.Sleep(think)
	return nil
}

func (h *handOvers) reset() {
	clear(h.waits)
	h.held.Store(0)
}

// figures adds what the workers saw.
func (h *handOvers) figures(f figures) {
	all, workers := slices.Concat(h.waits...), float64(len(h.waits))
	slices.Sort(all)
	f[heldPercent] = 100 * time.Duration(h.held.Load()).Seconds() / f[seconds]
	f[p50], f[p99], f[longest] = quantile(all, 0.5), quantile(all, 0.99), all[len(all)-1]
	f[smallest] = workers
	for _, own := range h.waits {
		share := float64(len(own)) * workers / float64(len(all))
		f[smallest], f[largest] = min(f[smallest], share), max(f[largest], share)
	}
}

// The targets that the project set itself for hand-overs. Those between processes are the
// stricter ones.
const (
	targetHeld        = 90 // % of the time
	targetHeldOfBound = 0.97
	targetWait        = 10 // milliseconds, of 99 % of the waits
	targetWaitFar     = 15
	targetWaitOfBound = 1.5
	targetSmallest    = 0.9 // of a worker's fair share
	targetLargest     = 1.1
	targetHandOverCPU = 70 // microseconds of Redis
	targetTrips       = 2
)

// locksReport is LOCKS.md.
func locksReport(r *results) report {
	return report{
		title: "neap's locks beside others",
		prose: `
This page compares neap's locks with other Go libraries: how fast a lock that many want is handed over, how long they
wait, and how many pairs of acquire and release fit into a second.

` + r.inRounds() + "If two have the lock at once, the run ends with an error.",
		sections: []section{
			targets(r.lockTargets()),
			r.handOverTable(handOver, fmt.Sprintf("Hand-over: %d goroutines of one process, one lock, %v hold, %v think time",
				handOver.goroutines, hold, think), ""),
			r.handOverTable(handOversFar[0], "The same between processes: 8 clients, a goroutine each", ""),
			r.handOverTable(handOversFar[1], "2 clients, a goroutine each", ""),
			r.handOverTable(handOversFar[2], "32 clients, a goroutine each", ""),
			r.handOverTable(handOversFar[3], fmt.Sprintf("8 clients, %d goroutines each", each),
				`
Held is the share of the time in which a worker had the lock. The smallest share is that of the worker that got the lock
least often, and the largest that of the worker that got it most often; 1 is a fair share. Redis CPU is that of the whole
server (INFO cpu), including its work while it is idle.`),
			r.uncontended(),
			r.who(""),
		},
	}
}

func (r *results) handOverTable(at cell, title, after string) section {
	of := func(m metric) func(string) any { return func(name string) any { return r.of(m, name, at) } }
	return table(title, namesOf(r.contestants), []column{
		{"held", "%.0f %%", of(heldPercent)},
		{"a second", "%.0f", of(rate)},
		{"wait, median, ms", "%.1f", of(p50)},
		{"99 %, ms", "%.1f", of(p99)},
		{"longest, ms", "%.1f", of(longest)},
		{"smallest share", "%.2f", of(smallest)},
		{"largest", "%.2f", of(largest)},
		{"Redis CPU a hand-over, µs", "%.0f", of(serverCPU)},
		{"failed", "%.0f", of(failed)},
	}, after)
}

func (r *results) uncontended() section {
	columns := []column{{"round trips", "%.3g", func(name string) any { return r.facts[name].sends[alone].count }}}
	for _, at := range r.plan.cells(0, alone) {
		head := fmt.Sprintf("a second, %d at once", at.goroutines)
		columns = append(columns, column{head, "%.0f", func(name string) any { return r.of(rate, name, at) }})
	}
	return table("Uncontended: acquire and release, each goroutine its own key", namesOf(r.contestants), columns, "")
}

func (r *results) lockTargets() []target {
	of := func(m metric, name string) spread { return r.of(m, name, handOver) }
	trips, polls := r.facts[neapLock].sends[alone].count, of(serverCPU, pollName).median
	all := []target{
		{"the lock is held", of(heldPercent, neapLock), "%.1f", " % of the time", atLeast, targetHeld},
		{"the bound is held", of(heldPercent, boundName), "%.1f", " % of the time", noTarget, 0},
		{"99 % of the waits are within", of(p99, neapLock), "%.1f", " ms", atMost, targetWait},
		{"the smallest share of a worker", of(smallest, neapLock), "%.2f", " of a fair one", atLeast, targetSmallest},
		{"the largest share of a worker", of(largest, neapLock), "%.2f", " of a fair one", atMost, targetLargest},
		{"Redis CPU a hand-over (the target is that of the 1 ms poll)", of(serverCPU, neapLock), "%.0f", " µs", atMost, polls},
		{"round trips of acquire and release", exactly(trips), "%.3g", "", atMost, targetTrips},
	}
	far := func(m metric, at cell) spread { return r.of(m, neapLock, at) }
	all = append(all,
		target{"99 % of the waits between processes are within", far(p99, handOverFar), "%.1f", " ms", atMost, targetWaitFar},
		target{"Redis CPU a hand-over between processes", far(serverCPU, handOverFar), "%.0f", " µs", atMost, targetHandOverCPU},
	)
	for _, at := range handOversFar {
		all = append(all,
			target{at.text() + ": held", r.ratio(heldPercent, neapLock, boundName, at), "%.2f", " of the bound", atLeast, targetHeldOfBound},
			target{at.text() + ": 99 % of the waits", r.ratio(p99, neapLock, boundName, at), "%.1f", " of the bound's", atMost, targetWaitOfBound},
			target{at.text() + ": the smallest share", far(smallest, at), "%.2f", " of a fair one", atLeast, targetSmallest},
			target{at.text() + ": the largest share", far(largest, at), "%.2f", " of a fair one", atMost, targetLargest},
		)
	}
	times := func(name string) cellTarget {
		t := target{format: "%.2f", unit: " times as many as " + name, direction: atLeast, bound: 1}
		return cellTarget{"acquire and release", rate, alone, neapLock, name, t}
	}
	return append(all, r.cellTargets("at once", times(redsyncIs), times(bslName))...)
}
