package quickstart

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// tokens takes estimates and settles them: to less, to more than there is, and when nothing is left.
func (v *visit) tokens(ctx context.Context) {
	began := time.Now()
	for _, use := range []struct {
		estimate, used int64
		status         int
		remaining      int64
	}{{600, 100, 200, 900}, {300, 1200, 200, 0}, {1, 1, 429, 0}} {
		target := fmt.Sprintf("/tokens?estimate=%d&used=%d", use.estimate, use.used)
		a := v.ask(ctx, request{method: http.MethodPost, target: target, header: http.Header{apiKeyHeader: {"alice"}}})
		refilled := int64(time.Since(began)*time.Duration(tokens.Rate)/tokens.Per) + 1
		var left int64
		_, _ = fmt.Sscanf(a.body, `{"remaining":%d}`, &left)
		v.checkf(a.status == use.status && (use.remaining == 0 && left == 0 || left >= use.remaining && left <= use.remaining+refilled),
			"%-36s %d, %d left (expected %d, %d)", target, a.status, left, use.status, use.remaining)
	}
}

// daily ends at midnight in Shanghai.
func (v *visit) daily(ctx context.Context) {
	before := time.Now()
	answers := v.row(ctx, int(daily.Limit)+1, get("/daily"))
	if before.In(shanghai).Day() != time.Now().In(shanghai).Day() {
		v.linef("  /daily: it was midnight in Shanghai, and the counts began again")
		return
	}
	last := answers[daily.Limit]
	year, month, day := before.In(shanghai).Date()
	left := time.Until(time.Date(year, month, day+1, 0, 0, 0, 0, shanghai))
	v.checkf(count(answers, 200) == daily.Limit && last.status == 429, "%-24s %s", "/daily", v.statuses(answers))
	if wait, ok := v.retryAfter("/daily", last, left+time.Minute); ok && wait < left-time.Minute {
		v.checkf(false, "/daily: Retry-After is %s (expected %s, until midnight in Shanghai)", wait, left.Round(time.Second))
	}
}

// queue has requests wait, and those that would wait for too long denied at once.
func (v *visit) queue(ctx context.Context) {
	began := time.Now()
	answers := v.volley(ctx, get("/queue"))
	least := mostWithin(queue, queueWait)
	most := mostWithin(queue, time.Since(began)+queueWait)
	served, last := count(answers, 200), answers[atOnce-1]
	v.checkf(served >= least && served <= most && served+count(answers, 429) == atOnce,
		"%-24s %d of %d at once, and the others at once 429 (expected %s)", "/queue", served, atOnce, fromTo(least, most))
	v.retryAfter("/queue", last, time.Duration(atOnce)*queue.Per/time.Duration(queue.Rate)+time.Second) // behind all that came with it
	if early := last.received.Sub(last.sent); served < atOnce && early > queueWait/2 {
		v.checkf(false, "/queue: a 429 came after %s (expected at once)", early)
	}
}

// ban has a client denied until it is banned, for longer than its policy would deny it.
func (v *visit) ban(ctx context.Context) {
	began := time.Now()
	answers := v.row(ctx, int(strict.Limit+ban.After)+1, get("/ban"))
	most := strict.Limit * (1 + int64(time.Since(began)/strict.Window))
	admitted, last := count(answers, 200), answers[len(answers)-1]
	v.checkf(admitted >= strict.Limit && admitted <= most && last.status == 429,
		"%-24s %s", "/ban", v.statuses(answers))
	if wait, ok := v.retryAfter("/ban", last, ban.For); ok && admitted == strict.Limit && wait <= strict.Window {
		v.checkf(false, "/ban: Retry-After is %s (expected more than the window of %s)", span(wait), span(strict.Window))
	}
}
