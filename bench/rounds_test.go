package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{nil, spread{}},
		{[]float64{7}, spread{7, 7, 7, 1}},
		{[]float64{4, 1, 3, 2}, spread{2.5, 1.75, 3.25, 4}},
		{[]float64{50, 10, 40, 20, 30}, spread{30, 20, 40, 5}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestNobodyWinsByNoise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b spread
		want bool
	}{
		{spread{2, 1.8, 2.2, 5}, spread{1, 0.9, 1.1, 5}, true},
		{spread{2, 1, 3, 5}, spread{1, 0.9, 1.1, 5}, false},
		{spread{1, 0.9, 1.1, 5}, spread{2, 1.8, 2.2, 5}, false},
		{spread{1, 1, 1, 1}, spread{1, 1, 1, 1}, false},
		{spread{1, 1, 1, 1}, spread{}, false},
	} {
		if got := c.a.above(c.b); got != c.want {
			t.Errorf("%v above %v: %t", c.a, c.b, got)
		}
	}
}

func TestFiguresAreRatiosToTheFloor(t *testing.T) {
	t.Parallel()
	under := floorOf([]slice{
		{decisions: 1000, elapsed: time.Second, cpu: 2000, mallocs: 10_000},
		{decisions: 10, elapsed: time.Second, cpu: 90, mallocs: 90}, // a stall
		{decisions: 1000, elapsed: time.Second, cpu: 2000, mallocs: 10_000},
	})
	got := beside(figuresOf(slice{decisions: 300, failed: 100, elapsed: 500 * time.Millisecond, cpu: 1200, mallocs: 3600}), under)
	want := sample{throughput: 0.6, perSecond: 600, cpu: 4, cpuFloors: 2, allocs: 2, errors: 0.25}
	if !near(got.throughput, want.throughput) || !near(got.cpuFloors, want.cpuFloors) || got.perSecond != want.perSecond ||
		got.cpu != want.cpu || got.allocs != want.allocs || got.errors != want.errors {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// fakes are contestants that write down when their slice begins.
func fakes(diary *[]string, kinds ...kind) []*entry {
	var mu sync.Mutex
	var all []*entry
	for i, k := range kinds {
		name := string(rune('a' + i))
		e := &entry{contestant: contestant{name: name, kind: k}, limiter: &limiter{}}
		e.take = func(context.Context, string) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			if n := len(*diary); n == 0 || (*diary)[n-1] != name {
				*diary = append(*diary, name)
			}
			return true, nil
		}
		all = append(all, e)
	}
	return all
}

func TestARoundAsksEveryoneOnceAndTheFloorInBetween(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	orders := map[string]bool{}
	for range 5 {
		var diary []string
		entries := fakes(&diary, floor, peer, peer, peer, peer, peer, peer)
		samples, err := s.round(t.Context(), entries, []string{"k"}, cell{1, false, 2}, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		order := strings.Join(diary, "")
		orders[order] = true
		slices.Sort(diary)
		if got := strings.Join(diary, ""); got != "aaabcdefg" || order[0] != 'a' || order[5] != 'a' || order[8] != 'a' {
			t.Errorf("the order was %s", order)
		}
		if len(samples) != len(entries) || !near(samples["a"].throughput, 1) {
			t.Errorf("samples %v", samples)
		}
	}
	if len(orders) == 1 {
		t.Error("five rounds had one order")
	}
}

func TestWrongAnswersEndTheRun(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	var diary []string
	entries := fakes(&diary, floor, peer)
	at := cell{1, true, 2}
	if _, err := s.round(t.Context(), entries, []string{"k"}, at, time.Millisecond); err == nil || !strings.Contains(err.Error(), "b gave") {
		t.Errorf("a contestant that admits where it must deny: %v", err)
	}
	down := errors.New("down")
	entries[1].take = func(context.Context, string) (bool, error) { return false, down }
	if _, err := s.round(t.Context(), entries, []string{"k"}, at, time.Millisecond); !errors.Is(err, down) {
		t.Errorf("a contestant that answers nothing: %v", err)
	}
	if err := useEach(t.Context(), entries[1].limiter, []string{"k"}); !errors.Is(err, down) {
		t.Errorf("a contestant that cannot use its keys: %v", err)
	}
	entries[1].take = func(context.Context, string) (bool, error) { return false, nil }
	if err := useEach(t.Context(), entries[1].limiter, []string{"k"}); err == nil {
		t.Error("a contestant that denies first requests may take part")
	}
}
