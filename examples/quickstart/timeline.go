package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
)

const (
	slot       = 50 * time.Millisecond // a column of the timeline
	slots      = 56
	permits    = 4 // of each policy in its period
	period     = time.Second
	labelWidth = 15 // of an algorithm's name

	passed, denied = "█", "·"
)

// lane is one algorithm of the timeline, all of them with the same numbers.
type lane struct {
	path   string
	policy limit.Policy
	most   int // that it can admit in one period, whatever is sent
}

func lanes() []lane {
	return []lane{
		{"/timeline/bucket", limit.TokenBucket{Rate: permits, Per: period, Burst: permits}, 2 * permits},
		{"/timeline/window", limit.FixedWindow{Limit: permits, Window: period}, 2 * permits},
		{"/timeline/sliding", limit.SlidingWindow{Limit: permits, Window: period}, 2 * permits},
		{"/timeline/log", limit.SlidingLog{Limit: permits, Window: period}, permits},
	}
}

func timelineRoutes() []route {
	all := lanes()
	routes := make([]route, len(all))
	for i, l := range all {
		routes[i] = route{path: l.path, policies: []limit.Policy{l.policy}, key: gate.ByIP(nil)}
	}
	return routes
}

// sends says in which slots a request is sent: a lone one, which opens a fixed
// window, a rush across that window's end, and then a steady trickle.
func sends(i int) bool {
	switch {
	case i == 0:
		return true
	case i < 14:
		return false
	case i < 32:
		return true
	}
	return i >= 36 && i%2 == 0
}

// timeline sends the same requests at the same moments to every algorithm.
func (v *visit) timeline(ctx context.Context) error {
	all := lanes()
	answers := make([][]answer, len(all))
	errs := make([]error, len(all))
	began := time.Now()
	var wg sync.WaitGroup
	for i, l := range all {
		wg.Go(func() { answers[i], errs[i] = v.pace(ctx, began, l.path) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	v.headingf("%d per %s by each algorithm: %s is a request let through, %s one denied",
		permits, unit(period), v.green(passed), v.red(denied))
	v.axis()
	for i, l := range all {
		v.draw(l, answers[i])
	}
	return nil
}

// pace sends each request in its slot, or as soon as the one before it has its
// answer.
func (v *visit) pace(ctx context.Context, began time.Time, path string) ([]answer, error) {
	var answers []answer
	for i := range slots {
		if !sends(i) {
			continue
		}
		if err := sleep(ctx, time.Until(began.Add(time.Duration(i)*slot))); err != nil {
			return nil, err
		}
		a, err := v.client.get(ctx, path)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

func (v *visit) axis() {
	var marks strings.Builder
	for i := range slots {
		if at := time.Duration(i) * slot; at%period == 0 {
			fmt.Fprintf(&marks, "%-*s", int(period/slot), span(at))
		}
	}
	v.linef("    %-*s%.*s  through   most in %s", labelWidth, "", slots, marks.String(), span(period))
}

// draw is a lane's row. The first requests must come through, and never more
// in one period than the algorithm can admit.
func (v *visit) draw(l lane, answers []answer) {
	var row strings.Builder
	for i, next := 0, 0; i < slots; i++ {
		switch {
		case !sends(i):
			row.WriteByte(' ')
			continue
		case answers[next].status == http.StatusOK:
			row.WriteString(v.green(passed))
		default:
			row.WriteString(v.red(denied))
		}
		next++
	}
	algorithm, _ := terms(l.policy)
	admitted, most := count(answers, http.StatusOK), busiest(answers, period)
	ok := count(answers[:permits], http.StatusOK) == permits && most <= l.most &&
		admitted+count(answers, http.StatusTooManyRequests) == len(answers)
	mark := v.mark(ok, fmt.Sprintf("%s: %d of the first %d let through, at most %d in %s (expected %d, and at most %d)",
		l.path, count(answers[:permits], http.StatusOK), permits, most, span(period), permits, l.most))
	v.linef("  %s %-*s%s  %2d of %d  %d, at worst %d", mark, labelWidth, algorithm, row.String(),
		admitted, len(answers), most, l.most)
}

// busiest is the most requests that were surely admitted within less than d:
// the first was decided after it was sent, the last before it was answered.
func busiest(answers []answer, d time.Duration) int {
	most := 0
	for i, first := range answers {
		n := 0
		for _, last := range answers[i:] {
			if last.received.Sub(first.sent) >= d {
				break
			}
			if last.status == http.StatusOK {
				n++
			}
		}
		if first.status == http.StatusOK {
			most = max(most, n)
		}
	}
	return most
}
