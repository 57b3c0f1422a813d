package main

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestThePartnerJudges: what it must find it finds, and nothing else.
func TestThePartnerJudges(t *testing.T) {
	t.Parallel()
	const every = window / allowed
	for name, c := range map[string]struct {
		requests int
		every    time.Duration
		resumes  time.Duration // after the pause has begun
		want     string
	}{
		"as many as it allows": {300, every, pauses, ""},
		"faster":               {300, every - time.Millisecond, pauses, "had to refuse"},
		"too early":            {300, every, pauses - 2*every, "came while the partner wanted none"},
		"on its way":           {300, every, onWay, ""},
		"too short":            {20, every, pauses, "not asked for long enough"},
		"none":                 {0, every, pauses, "not asked"},
	} {
		p := newPartner(5 * time.Second)
		now := time.Now()
		for range c.requests {
			status, retryAfter := p.answer(now)
			if retryAfter == pauses && status == http.StatusTooManyRequests {
				if c.resumes == onWay { // one, and then none for the rest of the pause
					p.answer(now.Add(onWay))
					now = now.Add(pauses)
				} else {
					now = now.Add(c.resumes)
				}
			}
			now = now.Add(c.every)
		}
		err := p.judge()
		p.Close()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q\n%s", name, err, c.want, p)
		}
	}
}
