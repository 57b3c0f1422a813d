package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

// Who handles an event that is sent again, or does not handle one, is found out.
func TestCallbacksAreWatched(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	stands, closeAll, err := s.openGuards(t.Context(), callbackings())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	}()
	for _, st := range stands {
		if err := s.prepare(t.Context(), st); err != nil {
			t.Fatal(st.name, err)
		}
		for _, firsts := range []bool{true, false} {
			if p, err := s.pace(t.Context(), st, 2, time.Millisecond, firsts); err != nil || p.rate <= 0 {
				t.Errorf("%s: %+v, %v", st.name, p, err)
			}
		}
		st.free = !st.free
		if _, err := s.pace(t.Context(), st, 1, time.Millisecond, false); err == nil {
			t.Errorf("%s passed for the other", st.name)
		}
	}
}

func TestTheCallbacksReport(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	of, err := s.measureGuards(t.Context(), callbackings(), 2, time.Millisecond, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r := &callbackResults{of}
	for name, want := range map[string]keeps{neapCallback: {first: 2, replay: 1}, bareCallback: {}} {
		if got := r.kept[name]; got.first != want.first || got.replay != want.replay || (got.bytes > 0) != (name == neapCallback) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, rate := range map[string]float64{bareCallback: 4000, neapCallback: 1000} {
		one := turn{first: map[int]pace{}, replay: map[int]pace{}}
		for _, n := range crowds {
			one.first[n], one.replay[n] = pace{rate: rate, cpu: 1}, pace{rate: rate / 2, cpu: 1}
		}
		r.measured[name] = []turn{one, one}
	}
	text := r.report()
	for begins, want := range map[string]string{
		"- round trips of a delivery": "2, to be 2, and of a replayed one 1, to be 1: held",
		"- first, 1 at once":          "1000 a second, to be at least 1000: held; that is 0.25 (0.25–0.25) of the handler alone",
		"- replayed, 16 at once":      "500 a second, to be at least 1000: **not held**; that is 0.25",
	} {
		if got := line(text, begins); !strings.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
	if strings.Contains(text, "NaN") || strings.Count(text, "| "+neapCallback+" |") != 2 {
		t.Error(text)
	}
}
