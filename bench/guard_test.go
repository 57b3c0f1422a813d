package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// eachStand has every contestant ask for a moment in each way, and then calls f.
func eachStand(t *testing.T, all []guarding, f func(s *server, st *stand)) {
	t.Helper()
	s := testServer(t)
	stands, closeAll, err := s.openGuards(t.Context(), all)
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
		f(s, st)
	}
}

// oneRound measures all for a moment.
func oneRound(t *testing.T, all []guarding, crowds []int) *guardResults {
	t.Helper()
	r, err := testServer(t).measureGuards(t.Context(), all, crowds, 1, time.Millisecond, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// steady has a contestant do so much in each of two rounds.
func (r *guardResults) steady(name string, first, replay float64) {
	one := turn{first: map[int]pace{}, replay: map[int]pace{}}
	for _, n := range r.crowds {
		one.first[n], one.replay[n] = pace{rate: first, cpu: 10}, pace{rate: replay, cpu: 10}
	}
	r.measured[name] = []turn{one, one}
}

// A contestant that does not do what its name says is found out.
func TestGuardsAreWatched(t *testing.T) {
	t.Parallel()
	eachStand(t, guardings(), func(s *server, st *stand) {
		if st.free || st.name == guardScript {
			return // which make no difference
		}
		first, replay := st.first, st.replay
		st.first = func(ctx context.Context, _ string) error { return first(ctx, st.done[0]) }
		st.replay = func(ctx context.Context, _ string) error { return replay(ctx, operation()) }
		if _, err := s.pace(t.Context(), st, 1, time.Millisecond, true); err == nil {
			t.Errorf("%s: a replay passed for a first request", st.name)
		}
		if _, err := s.pace(t.Context(), st, 1, time.Millisecond, false); err == nil {
			t.Errorf("%s: a first request passed for a replay", st.name)
		}
	})
}

// What is said of the middlewares is what they do.
func TestPromises(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	for db, c := range guardings() {
		if c.middleware == nil {
			continue
		}
		got, err := s.probe(t.Context(), c.middleware, env{s.addr, db})
		if err != nil {
			t.Fatal(c.name, err)
		}
		want := promises{beside: 1, besideIs: 409, otherBody: 422, otherUser: 201, full: 201, fullRuns: 1}
		if c.kind == peer {
			want = promises{
				beside: 2, besideIs: 201, otherBody: 201, bodyLeaks: true, otherUser: 201, userLeaks: true, cookie: true,
				full: 500, fullRuns: 2,
			}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}

// flatGuards have the same figures, but that neap's are twice the others'.
func flatGuards() *guardResults {
	r := &guardResults{
		when: time.Now(), rounds: 2, slice: time.Second, all: guardings(), crowds: crowds,
		measured: map[string][]turn{}, kept: map[string]keeps{}, promises: map[string]promises{},
	}
	for _, c := range r.all {
		k, rate := keeps{first: 3, replay: 1, bytes: 1500}, 1000.0
		if c.kind == ours {
			k, rate = keeps{first: 2, replay: 1, bytes: 1400}, 2000
		}
		r.steady(c.name, rate, 2*rate)
		r.kept[c.name] = k
		if c.middleware != nil {
			r.promises[c.name] = promises{beside: 2, besideIs: 409, bodyLeaks: true, otherBody: 201, fullRuns: 1, full: 200}
		}
	}
	return r
}

func TestTheGuardsReport(t *testing.T) {
	t.Parallel()
	r := flatGuards()
	text := r.report()
	for _, c := range r.all {
		if strings.Count(text, "| "+c.name+" |") < 2 {
			t.Errorf("%s is not in every table", c.name)
		}
	}
	for begins, want := range map[string]string{
		"- a replay, 1 at once":                 "costs 0.50 GETs of the same bytes, to be at most 1.3: held",
		"- an answer of 1024 bytes":             "kept in 1400, to be at most 1434: held",
		"- round trips of a first request":      "2, to be 2, and of a replay 1, to be 1: held",
		"Behind Fiber, 16 at once, neap serves": "2.00 (2.00–2.00) times as many",
		"| two duplicates at once":              "**runs 2 times**; the second is answered 409",
		"| the key again, with another body":    "**the first's answer** (201)",
	} {
		if got := line(text, begins); !strings.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
	slow := r.measured[neapGuard][0]
	slow.replay[1] = pace{rate: 1}
	r.kept[neapGuard] = keeps{first: 3, replay: 1, bytes: 1434}
	text = r.report()
	for _, begins := range []string{"- a replay, 1 at once", "- an answer of 1024 bytes", "- round trips of a first request"} {
		if got := line(text, begins); !strings.Contains(got, "**not held**") {
			t.Errorf("%q", got)
		}
	}
	if strings.Contains(text, "NaN") {
		t.Error(text)
	}
}

func TestOneGuardRound(t *testing.T) {
	t.Parallel()
	r := oneRound(t, guardings(), crowds)
	for name, want := range map[string]keeps{
		guardGET: {first: 2, replay: 1}, neapGuard: {first: 2, replay: 1}, neapFiber: {first: 2, replay: 1},
		fibersOwn: {first: 3, replay: 1}, bareFiber: {},
	} {
		got := r.kept[name]
		if got.first != want.first || got.replay != want.replay || (got.bytes > 1024) != (name != bareFiber) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if strings.Contains(r.report(), "NaN") {
		t.Error(r.report())
	}
}
