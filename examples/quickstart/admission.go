package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// burst counts who comes through when all come at once.
func (v *visit) burst(ctx context.Context) error {
	v.headingf("%d requests at once to /detail (%s)", atOnce, describe([]limit.Policy{detail}))
	answers, err := v.client.volley(ctx, "/detail")
	if err != nil {
		return err
	}
	v.linef("  %s", v.statuses(answers))
	admitted, denied := count(answers, 200), count(answers, 429)
	v.checkf(admitted == int(detail.Limit) && admitted+denied == atOnce,
		"/detail: %d let through, %d denied (expected %d and %d)",
		admitted, denied, detail.Limit, atOnce-detail.Limit)
	return nil
}

// headers shows what a client learns.
func (v *visit) headers(ctx context.Context) error {
	n := int(window.Limit)
	v.headingf("The headers of /window (%s): of answer 1 and of answer %d",
		describe([]limit.Policy{window}), n+1)
	answers, err := v.client.row(ctx, n+1, "/window")
	if err != nil {
		return err
	}
	first, last := answers[0], answers[n]
	v.columns(head(first), head(last))
	v.checkf(count(answers[:n], 200) == n && last.status == 429,
		"/window: %d let through, then %d (expected %d, then 429)", count(answers[:n], 200), last.status, n)
	for _, field := range []string{"RateLimit-Policy", "RateLimit"} {
		if first.header.Get(field) == "" || last.header.Get(field) == "" {
			v.checkf(false, "/window: %s is missing", field)
		}
	}
	wait, ok := retryAfter(last)
	if !ok || wait < time.Second || wait > window.Window {
		v.checkf(false, "/window: Retry-After is %q (expected 1 to %g)",
			last.header.Get("Retry-After"), window.Window.Seconds())
	}
	return nil
}

// head is what an answer begins with, its fields in order.
func head(a answer) []string {
	lines := []string{fmt.Sprintf("HTTP/1.1 %d %s", a.status, http.StatusText(a.status))}
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		for _, value := range a.header[name] {
			lines = append(lines, name+": "+value)
		}
	}
	return lines
}

func retryAfter(a answer) (wait time.Duration, ok bool) {
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second, err == nil
}
