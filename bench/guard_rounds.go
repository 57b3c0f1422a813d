package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// pace is what one slice of requests came to.
type pace struct {
	rate   float64 // requests a second
	cpu    float64 // microseconds of the server's time a request
	within float64 // of these, microseconds within the commands
	own    float64 // microseconds of this process a request, with those of the client of its server
	allocs float64 // likewise
}

// turn is what one contestant did in one round, by goroutines.
type turn struct {
	first, replay map[int]pace
}

// keeps is what a contestant sends and keeps for a request.
type keeps struct {
	first, replay float64 // commands
	bytes         float64
}

type guardResults struct {
	host     string
	when     time.Time
	rounds   int
	slice    time.Duration
	all      []guarding
	crowds   []int // goroutines
	measured map[string][]turn
	kept     map[string]keeps
	promises map[string]promises
}

// known are so many keys that were done before they are replayed.
const known = 64

func (s *server) measureGuards(
	ctx context.Context, all []guarding, crowds []int, rounds int, d time.Duration, progress io.Writer,
) (r *guardResults, err error) {
	host, err := s.host(ctx)
	if err != nil {
		return nil, err
	}
	r = &guardResults{
		host: host, when: time.Now(), rounds: rounds, slice: d, all: all, crowds: crowds,
		measured: map[string][]turn{}, kept: map[string]keeps{}, promises: map[string]promises{},
	}
	stands, closeAll, err := s.openGuards(ctx, r.all)
	defer func() { err = errors.Join(err, closeAll()) }()
	if err != nil {
		return nil, err
	}
	for _, st := range stands {
		fmt.Fprintf(progress, "what is promised and kept: %s\n", st.name)
		if r.kept[st.name], err = s.kept(ctx, st); err == nil && st.middleware != nil {
			r.promises[st.name], err = s.probe(ctx, st.middleware, env{s.addr, st.db})
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", st.name, err)
		}
	}
	for i := range rounds {
		fmt.Fprintf(progress, "round %d of %s\n", i+1, all[len(all)-1].kin)
		round, err := s.guardRound(ctx, stands, crowds, d)
		if err != nil {
			return nil, err
		}
		for name, one := range round {
			r.measured[name] = append(r.measured[name], one)
		}
	}
	return r, nil
}

// stand is a contestant at work, with keys that were done.
type stand struct {
	guarding
	*guarded
	db    int
	done  []string
	share map[string]float64 // of commands that clients sent
}

func (s *server) openGuards(ctx context.Context, all []guarding) (stands []*stand, closeAll func() error, err error) {
	closeAll = func() (err error) {
		for _, st := range stands {
			err = errors.Join(err, st.close())
		}
		return err
	}
	for db, c := range all {
		g, err := c.open(ctx, env{s.addr, db})
		if err != nil {
			return stands, closeAll, fmt.Errorf("%s: %w", c.name, err)
		}
		stands = append(stands, &stand{guarding: c, guarded: g, db: db})
	}
	return stands, closeAll, nil
}

// prepare does some keys, on an empty database.
func (s *server) prepare(ctx context.Context, st *stand) error {
	if err := s.empty(ctx, st.db); err != nil {
		return err
	}
	if st.fill != nil {
		if err := st.fill(ctx); err != nil {
			return err
		}
	}
	st.done = make([]string, known)
	for i := range st.done {
		st.done[i] = operation()
		if err := st.first(ctx, st.done[i]); err != nil {
			return err
		}
	}
	return nil
}

// guardRound has every contestant ask in turn, in each way in an order of its
// own, so that what is compared is as near in time as can be.
func (s *server) guardRound(ctx context.Context, stands []*stand, crowds []int, d time.Duration) (map[string]turn, error) {
	round := map[string]turn{}
	most := crowds[len(crowds)-1]
	for _, st := range stands {
		round[st.name] = turn{first: map[int]pace{}, replay: map[int]pace{}}
		err := s.prepare(ctx, st)
		if err == nil {
			_, err = s.pace(ctx, st, most, d/5, false) // connects
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", st.name, err)
		}
	}
	for _, goroutines := range crowds {
		for _, runs := range []bool{false, true} {
			for _, i := range rand.Perm(len(stands)) {
				st := stands[i]
				p, err := s.pace(ctx, st, goroutines, d, runs)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", st.name, err)
				}
				if runs {
					round[st.name].first[goroutines] = p
				} else {
					round[st.name].replay[goroutines] = p
				}
			}
		}
	}
	return round, nil
}

// pace has so many goroutines ask for the time of a slice, each once at least, for
// first requests or for replays, and sees to it that the handler ran where it had
// to and nowhere else.
func (s *server) pace(ctx context.Context, st *stand, goroutines int, d time.Duration, firsts bool) (p pace, err error) {
	ask := func() error { return st.replay(ctx, st.done[rand.IntN(len(st.done))]) }
	if firsts {
		ask = func() error { return st.first(ctx, operation()) }
	}
	ran := int64(0)
	if st.runs != nil {
		ran = st.runs()
	}
	before, err := s.busy(ctx)
	said, fault := s.counts(ctx)
	if err := errors.Join(err, fault); err != nil {
		return p, err
	}
	var done sync.WaitGroup
	var n atomic.Int64
	faults := make([]error, goroutines)
	var memory, memoryAfter runtime.MemStats
	runtime.ReadMemStats(&memory)
	used := ownCPU()
	began := time.Now()
	for i := range goroutines {
		done.Go(func() {
			for again := true; again; again = time.Since(began) < d && faults[i] == nil && ctx.Err() == nil {
				faults[i] = ask()
				n.Add(1)
			}
		})
	}
	done.Wait()
	elapsed := time.Since(began)
	used = ownCPU() - used
	runtime.ReadMemStats(&memoryAfter)
	after, err := s.busy(ctx)
	saidAfter, fault := s.counts(ctx)
	if err := errors.Join(errors.Join(faults...), err, fault, ctx.Err()); err != nil {
		return p, err
	}
	if st.runs != nil {
		want := int64(0)
		if firsts || st.free {
			want = n.Load()
		}
		if ran = st.runs() - ran; ran != want {
			return p, fmt.Errorf("the handler ran %d times for %d requests, not %d", ran, n.Load(), want)
		}
	}
	asked := float64(n.Load())
	p = pace{
		rate: asked / elapsed.Seconds(), cpu: (after - before) / asked, own: used / asked,
		allocs: float64(memoryAfter.Mallocs-memory.Mallocs) / asked,
	}
	for name, share := range st.share {
		p.within += share * (saidAfter.usec[name] - said.usec[name]) / asked
	}
	return p, nil
}

// ownCPU is what this process has used, in microseconds.
func ownCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

// kept counts commands, and weighs what is left of a request.
func (s *server) kept(ctx context.Context, st *stand) (k keeps, err error) {
	if err := s.prepare(ctx, st); err != nil {
		return k, err
	}
	st.share = map[string]float64{}
	commands := func(ask func(i int) error) (float64, error) {
		heard, err := s.watch(ctx, st.db, func() error {
			for i := range probes {
				if err := ask(i); err != nil {
					return err
				}
			}
			return nil
		})
		maps.Copy(st.share, heard.share())
		return float64(len(heard.outer)) / probes, err
	}
	if k.first, err = commands(func(int) error { return st.first(ctx, operation()) }); err != nil {
		return k, err
	}
	if k.replay, err = commands(func(i int) error { return st.replay(ctx, st.done[i%known]) }); err != nil {
		return k, err
	}
	rdb := s.database(st.db)
	defer rdb.Close()
	left, err := state(ctx, rdb)
	for _, v := range left {
		k.bytes += float64(v.bytes) / float64(len(left))
	}
	return k, err
}
