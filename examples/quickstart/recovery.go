package main

import (
	"context"
	"strconv"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// recovery takes Retry-After at its word.
func (v *visit) recovery(ctx context.Context) error {
	v.headingf("%d at once to /bucket (%s), then one exactly Retry-After later",
		atOnce, describe([]limit.Policy{bucket}))
	began := time.Now()
	answers, err := v.client.volley(ctx, "/bucket")
	if err != nil {
		return err
	}
	most := mostWithin(bucket, time.Since(began))
	v.linef("  %s", v.statuses(answers))
	admitted := int64(count(answers, 200))
	last := answers[len(answers)-1]
	v.checkf(admitted >= bucket.Burst && admitted <= most && last.status == 429,
		"/bucket: %d let through (expected %s)", admitted, fromTo(bucket.Burst, most))

	wait, ok := retryAfter(last)
	if !ok || wait != time.Second { // the next permit is at most 0.5 s away
		v.checkf(false, "/bucket: Retry-After is %q (expected 1)", last.header.Get("Retry-After"))
		return nil
	}
	if err := sleep(ctx, wait); err != nil {
		return err
	}
	again, err := v.client.get(ctx, "/bucket")
	if err != nil {
		return err
	}
	v.checkf(again.status == 200, "/bucket: Retry-After: %g, and after %s: %d (expected 200)",
		wait.Seconds(), span(wait), again.status)
	return nil
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
