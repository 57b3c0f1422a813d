package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Who sells what there is none of, or refuses what there is, is found out.
func TestSalesAreWatched(t *testing.T) {
	t.Parallel()
	eachStand(t, sellings(), func(s *server, st *stand) {
		if st.free {
			return
		}
		first, replay := st.first, st.replay
		for _, sells := range []bool{true, false} {
			st.first = func(ctx context.Context, buyer string) error { _ = replay(ctx, buyer); return nil }
			st.replay = func(ctx context.Context, _ string) error { _ = first(ctx, operation()); return nil }
			if _, err := s.pace(t.Context(), st, 1, time.Millisecond, sells); err == nil {
				t.Errorf("%s: it sold where it was to refuse, or refused where it was to sell", st.name)
			}
		}
	})
}

func TestTheSalesReport(t *testing.T) {
	t.Parallel()
	r := &saleResults{oneRound(t, sellings(), []int{2, 3})}
	for name, want := range map[string]keeps{
		saleByDECR: {first: 1, replay: 1}, saleByLua: {first: 1, replay: 1}, saleAtOnce: {first: 1, replay: 1},
		saleConfirmed: {first: 2, replay: 1}, saleAlone: {},
	} {
		if got := r.kept[name]; got.first != want.first || got.replay != want.replay {
			t.Errorf("%s: %+v", name, got)
		}
		if in := r.measured[name][0].first[2].within; in < 0 || (in > 0) != (name != saleAlone) {
			t.Errorf("%s: %v microseconds in commands", name, in)
		}
	}
	for name, rate := range map[string]float64{saleByDECR: 1000, saleByLua: 950, saleAtOnce: 800, saleConfirmed: 500} {
		r.steady(name, rate, 900)
	}
	r.measured[saleAtOnce][0].first[2] = pace{rate: 800, cpu: 15, own: 5}
	check := func(want map[string]string) {
		t.Helper()
		text := r.report()
		for begins, want := range want {
			if got := line(text, begins); !strings.Contains(got, want) {
				t.Errorf("%q has no %q", got, want)
			}
		}
		if strings.Contains(text, "NaN") || strings.Count(text, "| "+saleAtOnce+" |") != 2 {
			t.Error(text)
		}
	}
	check(map[string]string{
		"- sold at once, by 2 connections":           "0.80 (0.80–0.80) of the throughput behind DECR, to be at least 0.8: held; a script that does nothing but DECR has 0.95",
		"- reserved and confirmed, by 3 connections": "0.50 (0.50–0.50); refused, since it is sold out: 1.00",
		"- CPU of Redis and the process together":    "that of DECR is 0.50 of what a sale at once takes, and 1.00 of a script's",
	})
	r.steady(saleAtOnce, 790, 900)
	check(map[string]string{"- sold at once, by 3 connections": "**not held**"})
}
