package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// otherRoutes begins the steps of this file, a line or two each.
func (v *visit) otherRoutes(context.Context) error {
	v.headingf("The other routes")
	return nil
}

func (v *visit) slidingRoute(ctx context.Context) error {
	return v.checkRow(ctx, "/sliding", "/sliding", nil, upTo(sliding.Limit)...)
}

// upTo is what a row of one request more than the limit gets.
func upTo(limit int64) []int {
	statuses := make([]int, limit+1)
	for i := range statuses {
		statuses[i] = 200
	}
	statuses[limit] = 429
	return statuses
}

// bothRoute lets the bucket deny first and refill: had its denials taken from the
// window, less than the window's limit would come through.
func (v *visit) bothRoute(ctx context.Context) error {
	began := time.Now()
	first, err := v.client.volley(ctx, "/both")
	if err != nil {
		return err
	}
	most := mostWithin(bothBucket, time.Since(began))
	if err := sleep(ctx, bothBucket.Per); err != nil {
		return err
	}
	second, err := v.client.volley(ctx, "/both")
	if err != nil {
		return err
	}
	a, b := int64(count(first, 200)), int64(count(second, 200))
	v.checkf(a >= bothBucket.Burst && a <= most && a+b == bothWindow.Limit,
		"%-24s %d of %d, %s later %d of %d (expected %d in all, as denials take nothing)",
		"/both", a, atOnce, span(bothBucket.Per), b, atOnce, bothWindow.Limit)
	return nil
}

func (v *visit) usersRoute(ctx context.Context) error {
	if err := v.checkRow(ctx, "/users/alice", "/users/alice", nil, upTo(users.Limit)...); err != nil {
		return err
	}
	return v.checkRow(ctx, "/users/bob", "/users/bob", nil, 200)
}

func (v *visit) keyRoute(ctx context.Context) error {
	for _, c := range []struct {
		what string
		keys []string
		want []int
	}{
		{"/key " + apiKeyHeader + ": alice", []string{"alice"}, upTo(apiKeys.Limit)},
		{"/key without the header", nil, []int{400}},
		{"/key with two of them", []string{"alice", "bob"}, []int{400}},
		{"/key with one of 2 KiB", []string{strings.Repeat("k", 2<<10)}, []int{400}},
	} {
		if err := v.checkRow(ctx, c.what, "/key", c.keys, c.want...); err != nil {
			return err
		}
	}
	return nil
}

// costRoute asks for everything last: what was refused has cost nothing.
func (v *visit) costRoute(ctx context.Context) error {
	for _, query := range []string{"", "?n=x", "?n=0", fmt.Sprintf("?n=%d", cost.Burst+1)} {
		if err := v.checkRow(ctx, "/cost"+query, "/cost"+query, nil, 400); err != nil {
			return err
		}
	}
	target := fmt.Sprintf("/cost?n=%d", cost.Burst)
	return v.checkRow(ctx, target, target, nil, 200, 429)
}

// loginRoute has logins that succeed, which take nothing, beside the others.
func (v *visit) loginRoute(ctx context.Context) error {
	right := slices.Repeat([]int{200}, int(logins.Limit)+1)
	if err := v.checkRow(ctx, "/login?ok=1", "/login?ok=1", nil, right...); err != nil {
		return err
	}
	wrong := append(slices.Repeat([]int{401}, int(logins.Limit)), 429)
	return v.checkRow(ctx, "/login?ok=0", "/login?ok=0", nil, wrong...)
}

func (v *visit) shadowRoute(ctx context.Context) error {
	n := int(shadow.Limit) + 1
	answers, err := v.client.row(ctx, n, "/shadow")
	if err != nil {
		return err
	}
	would := v.shadowed.Load()
	v.checkf(count(answers, 200) == n && answers[0].header.Get("RateLimit") == "" && would == 1,
		"%-24s %s, and %d would have been denied (expected 1)", "/shadow", v.statuses(answers), would)
	return nil
}

// inflightRoute counts by how often a slot can have been free: each request
// that is let through holds one for a while.
func (v *visit) inflightRoute(ctx context.Context) error {
	const hold = 500 * time.Millisecond
	target := fmt.Sprintf("/inflight?ms=%d", hold.Milliseconds())
	began := time.Now()
	answers, err := v.client.volley(ctx, target)
	if err != nil {
		return err
	}
	most := inflight * (1 + int64(time.Since(began)/hold))
	admitted := int64(count(answers, 200))
	v.checkf(admitted >= inflight && admitted <= most && admitted+int64(count(answers, 429)) == atOnce,
		"%-24s %d of %d at once (expected %s)", target, admitted, atOnce, fromTo(inflight, most))
	if last := answers[atOnce-1]; last.status == 429 && last.header.Get("Retry-After") != "1" {
		v.checkf(false, "/inflight: Retry-After is %q (expected 1)", last.header.Get("Retry-After"))
	}
	return v.checkRow(ctx, "/inflight?ms=0, then", "/inflight?ms=0", nil, 200)
}

// exclusiveRoute counts by how often the lock can have been free.
func (v *visit) exclusiveRoute(ctx context.Context) error {
	const hold = 300 * time.Millisecond
	target := fmt.Sprintf("/exclusive?ms=%d", hold.Milliseconds())
	began := time.Now()
	answers, err := together(func() (answer, error) { return v.client.post(ctx, target, "17") })
	if err != nil {
		return err
	}
	most := 1 + int64(time.Since(began)/hold)
	ran := int64(count(answers, 200))
	v.checkf(ran >= 1 && ran <= most && ran+int64(count(answers, 409)) == atOnce,
		"%-24s %d of %d for one order at once (expected %s)", target, ran, atOnce, fromTo(1, most))
	if last := answers[atOnce-1]; last.status == 409 && last.header.Get("Retry-After") != "1" {
		v.checkf(false, "/exclusive: Retry-After is %q (expected 1)", last.header.Get("Retry-After"))
	}
	next, err := v.client.post(ctx, "/exclusive?ms=0", "17")
	if err != nil {
		return err
	}
	v.checkf(next.status == 200, "%-24s %d (expected 200)", "/exclusive?ms=0, then", next.status)
	return nil
}

// ordersRoute places one order many times: it is booked once, and what comes
// later is refused or has the same answer, marked.
func (v *visit) ordersRoute(ctx context.Context) error {
	const target, order = "/orders?ms=100", `{"item":"tea"}`
	place := func() (answer, error) { return v.client.order(ctx, target, "order-1", order) }
	answers, err := together(place)
	if err != nil {
		return err
	}
	again, err := place()
	if err != nil {
		return err
	}
	first := slices.IndexFunc(answers, func(a answer) bool { return a.status == 201 && !replayed(a) })
	booked := make(map[string]bool)
	ran := 0
	for _, a := range append(answers, again) {
		if a.status == 201 {
			booked[a.body] = true
			if !replayed(a) {
				ran++
			}
		}
	}
	v.checkf(ran == 1 && len(booked) == 1 && count(answers, 201)+count(answers, 409) == atOnce,
		"%-24s %d of %d for one Idempotency-Key at once (expected 1)", target, ran, atOnce)
	v.checkf(first >= 0 && again.status == 201 && replayed(again) && again.body == answers[first].body &&
		again.header.Get("Location") == answers[first].header.Get("Location") && again.header.Get("Set-Cookie") == "",
		"%-24s %d, Idempotent-Replayed: %s (expected 201, true, and the same order)", target+", then", again.status,
		again.header.Get("Idempotent-Replayed"))
	other, err := v.client.order(ctx, target, "order-1", `{"item":"coffee"}`)
	if err != nil {
		return err
	}
	v.checkf(other.status == 422, "%-24s %d (expected 422)", "/orders, another body", other.status)
	return nil
}

func replayed(a answer) bool { return a.header.Get("Idempotent-Replayed") == "true" }

func (v *visit) freeRoute(ctx context.Context) error {
	answers, err := v.client.volley(ctx, "/free")
	if err != nil {
		return err
	}
	v.checkf(count(answers, 200) == atOnce && answers[0].header.Get("RateLimit") == "",
		"%-24s %d of %d (expected all)", "/free", count(answers, 200), atOnce)
	return nil
}
