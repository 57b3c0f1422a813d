package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

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
		if got := spreadOf(c.values, func(v float64) float64 { return v }); got != c.want {
			t.Errorf("%v is %v, want %v", c.values, got, c.want)
		}
	}
}

func TestNoiseDecidesNothing(t *testing.T) {
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

// A figure is compared with that of the same round, over the cells of all numbers of
// goroutines or of one.
func TestFiguresAreBesideThoseOfTheirRound(t *testing.T) {
	t.Parallel()
	r := &results{measured: map[cell]map[string][]figures{}}
	for i, n := range []int{1, 1, 16} {
		at := cell{way: admitted, goroutines: n}
		r.add(at, map[string]figures{"floor": {rate: 100 * float64(i+1)}, "a": {rate: 50}})
	}
	r.add(cell{way: denied, goroutines: 1}, map[string]figures{"floor": {rate: 1}, "a": {rate: 1}})
	one, all := cell{way: admitted, goroutines: 1}, cell{way: admitted}
	if got, want := r.ratio(rate, "a", "floor", one), (spread{0.375, 0.3125, 0.4375, 2}); got != want {
		t.Errorf("the ratio is %v, want %v", got, want)
	}
	if got := r.of(rate, "floor", all); got.median != 200 || got.rounds != 3 {
		t.Errorf("the floor of all goroutines is %v", got)
	}
}

func TestARoundMeasuresEachOnceAndTheFloorInBetween(t *testing.T) {
	t.Parallel()
	var group []contestant
	var started []slicer
	var order string
	for name := range strings.SplitSeq("abcdefgh", "") {
		group = append(group, contestant{name: name})
		started = append(started, func(context.Context, cell, time.Duration) (figures, error) {
			order += name
			if name == "a" && strings.Count(order, "a") == 2 {
				return figures{rate: 1}, nil // another process took the time
			}
			return figures{rate: 1000}, nil
		})
	}
	group[7].minGoroutines = 3
	orders := map[string]bool{}
	for range 5 {
		order = ""
		one, err := round(t.Context(), group, started, cell{goroutines: 2}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		orders[order] = true
		sorted := strings.Split(order, "")
		slices.Sort(sorted)
		if got := strings.Join(sorted, ""); got != "aaabcdefg" || order[0] != 'a' || order[5] != 'a' || order[8] != 'a' {
			t.Errorf("the order was %s", order)
		}
		if len(one) != 7 || one["a"][rate] != 1000 {
			t.Errorf("the round is %v", one)
		}
	}
	if len(orders) == 1 {
		t.Error("five rounds had one order")
	}
}

func TestASliceCountsWhatFails(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	down := errors.New("down")
	failing := [2]error{1: down}
	var calls [2]int
	l := load{goroutines: 2, length: 5 * time.Millisecond, mayFail: true, share: map[string]float64{"ping": 0.5}}
	l.call = func(ctx context.Context, i int) error {
		calls[i]++
		return errors.Join(s.admin.Ping(ctx).Err(), failing[i])
	}
	f, err := s.slice(t.Context(), l)
	if err != nil || f[failed] != float64(calls[1]) || f[rate]*f[seconds] < float64(calls[0])-1 {
		t.Errorf("a slice of %d calls and %d that fail: got %v, %v, want them counted apart", calls[0], calls[1], f, err)
	}
	redistest.Await(t, time.Minute, "a slice in which PING took a microsecond", func() bool {
		f, err := s.slice(t.Context(), l)
		return err == nil && f[commandCPU] > 0
	})
	l.mayFail = false
	if _, err := s.slice(t.Context(), l); !errors.Is(err, down) {
		t.Errorf("a slice whose calls must not fail: got %v, want %v", err, down)
	}
	l.mayFail, l.call = true, func(context.Context, int) error { return down }
	if _, err := s.slice(t.Context(), l); !errors.Is(err, down) {
		t.Errorf("a slice without a success: got %v, want %v", err, down)
	}
}

// resultsOf measures with the shortest slices.
func resultsOf(t *testing.T, b benchmark) (*results, error) {
	t.Helper()
	b.slices = 1
	return testServer(t).results(t.Context(), b, plan{rounds: 1, slice: time.Millisecond, tries: 1}, io.Discard)
}

func TestWrongAnswersEndTheRun(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for _, c := range []struct {
		answer way
		allow  bool
		err    error
		want   error
	}{
		{admitted, true, nil, nil}, {admitted, false, nil, errWrong},
		{denied, true, nil, errWrong}, {admitted, false, down, down},
	} {
		stub := contestant{name: "stub", limiter: func(context.Context, *env, workload) (take, error) {
			return func(context.Context, string) (bool, error) { return c.allow, c.err }, nil
		}}
		measure := func(s *server, ctx context.Context, r *results) error {
			r.contestants = []contestant{floors()[0], stub}
			return s.limitsOf(ctx, r, s, 1, c.answer, r.plan.cells(1, c.answer))
		}
		_, err := resultsOf(t, benchmark{goroutines: []int{2}, measure: measure})
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), "stub") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestTwoHoldersEndTheRun(t *testing.T) {
	t.Parallel()
	stub := func(context.Context, string) (func() error, error) { return func() error { return nil }, nil }
	_, err := testServer(t).lockSlice(t.Context(), []acquire{stub}, handOver, 10*time.Millisecond)
	if !errors.Is(err, errWrong) {
		t.Errorf("all have the lock at once: %v", err)
	}
}
