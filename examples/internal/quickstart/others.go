package quickstart

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// both lets the bucket deny first and refill: had its denials taken from the
// window, less than the window's limit would come through.
func (v *visit) both(ctx context.Context) {
	began := time.Now()
	first := count(v.volley(ctx, get("/both")), 200)
	most := mostWithin(bothBucket, time.Since(began))
	v.failed(sleep(ctx, bothBucket.Per))
	second := count(v.volley(ctx, get("/both")), 200)
	v.checkf(first >= bothBucket.Burst && first <= most && first+second == bothWindow.Limit,
		"%-24s %d of %d, %s later %d of %d (expected %d in all, as denials take nothing)",
		"/both", first, atOnce, span(bothBucket.Per), second, atOnce, bothWindow.Limit)
}

func (v *visit) shadow(ctx context.Context) {
	n := shadow.Limit + 1
	answers := v.row(ctx, int(n), get("/shadow"))
	would := v.shadowed.Load()
	v.checkf(count(answers, 200) == n && answers[0].header.Get("RateLimit") == "" && would == 1,
		"%-24s %s, and %d would have been denied (expected 1)", "/shadow", v.statuses(answers), would)
}

func (v *visit) inflight(ctx context.Context) {
	v.holding(ctx, get("/inflight"), 500*time.Millisecond, running, 429, "at once")
	v.check(ctx, row{"/inflight?ms=0", ", then", nil, []int{200}})
}

func (v *visit) exclusive(ctx context.Context) {
	order := request{method: http.MethodPost, target: "/exclusive", header: http.Header{orderHeader: {"17"}}}
	v.holding(ctx, order, 300*time.Millisecond, 1, 409, "for one order at once")
	order.target = "/exclusive?ms=0"
	next := v.ask(ctx, order)
	v.checkf(next.status == 200, "%-24s %d (expected 200)", order.target+", then", next.status)
}

// holding sends requests at once that each hold one of the slots for a while, or
// are refused. It counts by how often a slot can have been free.
func (v *visit) holding(
	ctx context.Context, r request, hold time.Duration, slots int64, refusal int, what string,
) {
	path := r.target
	r.target = fmt.Sprintf("%s?ms=%d", path, hold.Milliseconds())
	began := time.Now()
	answers := v.volley(ctx, r)
	most := slots * (1 + int64(time.Since(began)/hold))
	ran := count(answers, 200)
	v.checkf(ran >= slots && ran <= most && ran+count(answers, refusal) == atOnce,
		"%-24s %d of %d %s (expected %s)", r.target, ran, atOnce, what, fromTo(slots, most))
	if last := answers[atOnce-1]; last.status == refusal {
		v.retryAfter(path, last, time.Second)
	}
}

// orders places one order many times: it is booked once, and what comes later is
// refused or has the same answer, marked.
func (v *visit) orders(ctx context.Context) {
	order := request{http.MethodPost, "/orders?ms=100", `{"item":"tea"}`, http.Header{
		apiKeyHeader: {"alice"}, keyHeader: {"order-1"}, "Content-Type": {contentJSON},
	}}
	answers := v.volley(ctx, order)
	again := v.ask(ctx, order)
	ran, booked := 0, map[string]bool{}
	for _, a := range append(answers, again) {
		if a.status == 201 {
			booked[a.header.Get("Location")+a.body] = true
			if !replayed(a) {
				ran++
			}
		}
	}
	v.checkf(ran == 1 && count(answers, 201)+count(answers, 409) == atOnce,
		"%-24s %d of %d for one Idempotency-Key at once (expected 1)", order.target, ran, atOnce)
	v.checkf(again.status == 201 && replayed(again) && again.header.Get("Set-Cookie") == "" && len(booked) == 1,
		"%-24s %d, Idempotent-Replayed: %s (expected 201, true, and the same order)", order.target+", then",
		again.status, again.header.Get("Idempotent-Replayed"))
	order.body = `{"item":"coffee"}`
	other := v.ask(ctx, order)
	v.checkf(other.status == 422, "%-24s %d (expected 422)", "/orders, another body", other.status)
}

func replayed(a answer) bool { return a.header.Get("Idempotent-Replayed") == "true" }

func (v *visit) free(ctx context.Context) {
	answers := v.volley(ctx, get("/free"))
	admitted := count(answers, 200)
	v.checkf(admitted == atOnce && answers[0].header.Get("RateLimit") == "",
		"%-24s %d of %d (expected all)", "/free", admitted, atOnce)
}
