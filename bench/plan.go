package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// plan is what a run measures.
type plan struct {
	rounds     int
	slice      time.Duration
	tries      int   // of everybody at once
	keys       []int // 1 is one hot key
	goroutines []int
}

// probes is how many requests of one caller tell what a contestant sends.
const probes = 100

// manyCallers is from how many goroutines on a contestant takes part that is
// for a crowd.
const manyCallers = 100

// samples are a cell's, by contestant, one a round.
type samples map[string][]sample

// measure runs the whole plan and tells how far it is.
func (s *server) measure(ctx context.Context, p plan, all []contestant, progress io.Writer) (map[cell]samples, error) {
	measured := map[cell]samples{}
	start := time.Now()
	tell := func(what string) {
		fmt.Fprintf(progress, "%4.0f s  %s\n", time.Since(start).Seconds(), what)
	}
	for _, n := range p.keys {
		for _, denied := range []bool{false, true} {
			tell(fmt.Sprintf("%s, to be %s: using each once", keysText(n), cell{denied: denied}.answer()))
			keys := subjects(n)
			entries, err := s.open(ctx, all, keys, denied)
			if err != nil {
				return nil, err
			}
			for _, goroutines := range p.goroutines {
				c := cell{n, denied, goroutines}
				tell(c.text())
				if measured[c], err = s.cell(ctx, p, entries, keys, c); err != nil {
					return nil, err
				}
			}
			for _, e := range entries {
				if err := e.close(); err != nil {
					return nil, fmt.Errorf("closing %s: %w", e.name, err)
				}
			}
		}
	}
	return measured, nil
}

func (s *server) cell(ctx context.Context, p plan, entries []*entry, keys []string, c cell) (samples, error) {
	var here []*entry
	for _, e := range entries {
		if !e.crowd || c.goroutines >= manyCallers {
			here = append(here, e)
		}
	}
	// The connections of so many callers are dialled before anything counts.
	for _, e := range here {
		if _, err := s.run(ctx, e, keys, c, p.slice/10); err != nil {
			return nil, err
		}
	}
	all := samples{}
	for range p.rounds {
		round, err := s.round(ctx, here, keys, c, p.slice)
		if err != nil {
			return nil, err
		}
		for name, one := range round {
			all[name] = append(all[name], one)
		}
	}
	return all, nil
}

// open starts every contestant afresh, uses each key once, and listens to what
// is sent from then on.
func (s *server) open(ctx context.Context, all []contestant, keys []string, denied bool) ([]*entry, error) {
	if err := s.admin.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	var entries []*entry
	for db, one := range all {
		if denied && one.refills {
			continue
		}
		e, err := s.openOne(ctx, one, db, keys, denied)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (s *server) openOne(ctx context.Context, one contestant, db int, keys []string, denied bool) (*entry, error) {
	w := ample
	switch {
	case denied:
		w = spent
	case len(keys) > 1:
		w = broad
	}
	l, err := one.open(ctx, env{s.addr, db}, w)
	if err != nil {
		return nil, err
	}
	if err := useEach(ctx, l, keys); err != nil {
		return nil, err
	}
	heard, err := s.watch(ctx, db, func() error {
		for i := range probes {
			if _, err := l.take(ctx, keys[i%len(keys)]); err != nil {
				return err
			}
		}
		return nil
	})
	return &entry{one, l, heard.share()}, err
}

// useEach takes once for every key, which must be admitted.
func useEach(ctx context.Context, l *limiter, keys []string) error {
	const callers = 64
	var next, refused atomic.Int64
	var done sync.WaitGroup
	var fault error
	var once sync.Once
	for range callers {
		done.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(keys)); i = next.Add(1) - 1 {
				allowed, err := l.take(ctx, keys[i])
				if err != nil {
					once.Do(func() { fault = err })
					return
				}
				if !allowed {
					refused.Add(1)
				}
			}
		})
	}
	done.Wait()
	if fault == nil && refused.Load() > 0 {
		return fmt.Errorf("denied %d of %d first requests", refused.Load(), len(keys))
	}
	return fault
}

// subjects are n short ones.
func subjects(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("ip=10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	}
	return all
}

func keysText(n int) string {
	if n == 1 {
		return "one hot key"
	}
	return fmt.Sprintf("%d,%03d keys", n/1000, n%1000)
}
