package main

import (
	"strings"
	"testing"
	"time"
)

// Who handles an event that is sent again, or does not handle one, is found out.
func TestCallbacksAreWatched(t *testing.T) {
	t.Parallel()
	eachStand(t, callbackings(), func(s *server, st *stand) {
		st.free = !st.free
		if _, err := s.pace(t.Context(), st, 1, time.Millisecond, false); err == nil {
			t.Errorf("%s passed for the other", st.name)
		}
	})
}

func TestTheCallbacksReport(t *testing.T) {
	t.Parallel()
	r := &callbackResults{oneRound(t, callbackings(), crowds)}
	for name, want := range map[string]keeps{neapCallback: {first: 2, replay: 1}, bareCallback: {}} {
		if got := r.kept[name]; got.first != want.first || got.replay != want.replay || (got.bytes > 0) != (name == neapCallback) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, rate := range map[string]float64{bareCallback: 4000, neapCallback: 1000} {
		r.steady(name, rate, rate/2)
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
