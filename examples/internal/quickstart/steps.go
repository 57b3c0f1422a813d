package quickstart

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// step sends requests to what belongs together.
type step struct {
	path string // of its routes, or what their paths begin with
	run  func(*visit, context.Context)
}

// allSteps are what the demo shows of each framework, in order.
func allSteps() []step {
	return []step{
		{"/detail", (*visit).burst},
		{"/window", (*visit).headers},
		{"/bucket", (*visit).recovery},
		{"", func(v *visit, _ context.Context) { v.headingf("The other routes") }},
		{"/sliding", inRows(row{target: "/sliding", want: upTo(sliding.Limit)})},
		{"/both", (*visit).both},
		{"/users", inRows(
			row{target: "/users/alice", want: upTo(users.Limit)},
			row{target: "/users/bob", want: []int{200}},
		)},
		{"/key", inRows(
			row{"/key", " " + apiKeyHeader + ": alice", []string{"alice"}, upTo(apiKeys.Limit)},
			row{"/key", " without the header", nil, []int{400}},
			row{"/key", " with two of them", []string{"alice", "bob"}, []int{400}},
			row{"/key", " with one of 2 KiB", []string{strings.Repeat("k", 2<<10)}, []int{400}},
		)},
		{"/cost", inRows( // everything last: what was refused has cost nothing
			row{target: "/cost", want: []int{400}},
			row{target: "/cost?n=x", want: []int{400}},
			row{target: "/cost?n=0", want: []int{400}},
			row{target: fmt.Sprintf("/cost?n=%d", cost.Burst+1), want: []int{400}},
			row{target: fmt.Sprintf("/cost?n=%d", cost.Burst), want: []int{200, 429}},
		)},
		{"/login", inRows( // logins that succeed take nothing
			row{target: "/login?ok=1", want: times(logins.Limit+1, 200)},
			row{target: "/login?ok=0", want: times(logins.Limit, 401, 429)},
		)},
		{"/tokens", (*visit).tokens},
		{"/daily", (*visit).daily},
		{"/three", inRows( // who is denied by one of them takes nothing of the others
			row{target: "/three/gold/ann", want: upTo(threeUser.Limit)},
			row{target: "/three/gold/bob", want: upTo(threePlan.Limit - threeUser.Limit)},
			row{target: "/three/gold/cid", want: []int{429}},
			row{target: "/three/tin/dan", want: upTo(threeUser.Limit)},
			row{target: "/three/tin/eve", want: upTo(threeAll.Limit - threePlan.Limit - threeUser.Limit)},
		)},
		{"/queue", (*visit).queue},
		{"/ban", (*visit).ban},
		{"/shadow", (*visit).shadow},
		{"/inflight", (*visit).inflight},
		{"/exclusive", (*visit).exclusive},
		{"/orders", (*visit).orders},
		{"/free", (*visit).free},
		{"/timeline", (*visit).timeline},
	}
}

// row is one request after the other to a target, and the statuses that they get.
type row struct {
	target string
	note   string   // for people: what there is to it
	keys   []string // the values of the API key header
	want   []int
}

// times is a status n times, and what follows.
func times(n int64, status int, then ...int) []int {
	return append(slices.Repeat([]int{status}, int(n)), then...)
}

// upTo is what a row of one request more than the limit gets.
func upTo(limit int64) []int { return times(limit, 200, 429) }

// inRows is a step of rows.
func inRows(rows ...row) func(*visit, context.Context) {
	return func(v *visit, ctx context.Context) {
		for _, r := range rows {
			v.check(ctx, r)
		}
	}
}

func (v *visit) check(ctx context.Context, r row) {
	answers := v.row(ctx, len(r.want), get(r.target, r.keys...))
	got := make([]int, len(answers))
	for i, a := range answers {
		got[i] = a.status
	}
	if slices.Equal(got, r.want) {
		v.checkf(true, "%-24s %s", r.target+r.note, v.statuses(answers))
	} else {
		v.checkf(false, "%-24s %s (expected %s)", r.target+r.note, join(got), join(r.want))
	}
}

func join(statuses []int) string {
	words := make([]string, len(statuses))
	for i, status := range statuses {
		words[i] = strconv.Itoa(status)
	}
	return strings.Join(words, " ")
}
