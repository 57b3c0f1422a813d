package quickstart

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

// burst counts how many come through when all come at once.
func (v *visit) burst(ctx context.Context) {
	v.headingf("%d requests at once to /detail (%s)", atOnce, describe(detail))
	answers := v.volley(ctx, get("/detail"))
	v.linef("  %s", v.statuses(answers))
	admitted, denied := count(answers, 200), count(answers, 429)
	v.checkf(admitted == detail.Limit && admitted+denied == atOnce,
		"/detail: %d let through, %d denied (expected %d and %d)",
		admitted, denied, detail.Limit, atOnce-detail.Limit)
}

// headers shows what a client learns.
func (v *visit) headers(ctx context.Context) {
	n := int(window.Limit)
	v.headingf("The headers of /window (%s): of answer 1 and of answer %d", describe(window), n+1)
	answers := v.row(ctx, n+1, get("/window"))
	first, last := answers[0], answers[n]
	v.columns(head(first), head(last))
	admitted := count(answers[:n], 200)
	v.checkf(admitted == window.Limit && last.status == 429,
		"/window: %d let through, then %d (expected %d, then 429)", admitted, last.status, n)
	for _, field := range []string{"RateLimit-Policy", "RateLimit"} {
		if first.header.Get(field) == "" || last.header.Get(field) == "" {
			v.checkf(false, "/window: %s is missing", field)
		}
	}
	v.retryAfter("/window", last, window.Window)
}

// recovery takes Retry-After at its word.
func (v *visit) recovery(ctx context.Context) {
	v.headingf("%d at once to /bucket (%s), then one exactly Retry-After later", atOnce, describe(bucket))
	began := time.Now()
	answers := v.volley(ctx, get("/bucket"))
	most := mostWithin(bucket, time.Since(began))
	v.linef("  %s", v.statuses(answers))
	admitted, last := count(answers, 200), answers[atOnce-1]
	v.checkf(admitted >= bucket.Burst && admitted <= most && last.status == 429,
		"/bucket: %d let through (expected %s)", admitted, fromTo(bucket.Burst, most))

	wait, ok := v.retryAfter("/bucket", last, time.Second) // the next permit is at most 0.5 s away
	if !ok {
		return
	}
	v.failed(sleep(ctx, wait))
	again := v.ask(ctx, get("/bucket"))
	v.checkf(again.status == 200, "/bucket: Retry-After: %g, and after %s: %d (expected 200)",
		wait.Seconds(), span(wait), again.status)
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

// retryAfter checks how long an answer has a client wait: from 1 second to most.
func (v *visit) retryAfter(path string, a answer, most time.Duration) (wait time.Duration, ok bool) {
	says := a.header.Get("Retry-After")
	seconds, err := strconv.Atoi(says)
	wait = time.Duration(seconds) * time.Second
	if err != nil || wait < time.Second || wait > most {
		v.checkf(false, "%s: Retry-After is %q (expected %s)", path, says, fromTo(1, int64(most/time.Second)))
		return 0, false
	}
	return wait, true
}

// mostWithin is what a full bucket lets through in d: its burst, and what it
// regains meanwhile.
func mostWithin(b limit.TokenBucket, d time.Duration) int64 {
	return b.Burst + int64(d*time.Duration(b.Rate)/b.Per)
}

func fromTo(from, to int64) string {
	text := strconv.FormatInt(from, 10)
	if from != to {
		text += " to " + strconv.FormatInt(to, 10)
	}
	return text
}
