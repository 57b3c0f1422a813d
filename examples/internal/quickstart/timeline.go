package quickstart

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
)

// rhythm is when requests are sent, a column a slot: a lone one, which opens a
// fixed window, a rush across that window's end, and then a steady trickle.
const rhythm = "x.............xxxxxxxxxxxxxxxxxx....x.x.x.x.x.x.x.x.x.x."

const (
	slot       = 50 * time.Millisecond // a column of the timeline
	slots      = len(rhythm)
	permits    = 4 // of each policy in its period
	period     = time.Second
	labelWidth = 15 // of an algorithm's name

	passed, denied = "█", "·"
)

// moments are the slots in which a request is sent.
var moments = func() (all []int) {
	for i, mark := range rhythm {
		if mark == 'x' {
			all = append(all, i)
		}
	}
	return all
}()

// lane is one algorithm of the timeline, all of them with the same numbers.
type lane struct {
	path   string
	policy limit.Policy
	most   int // that it can admit in one period, whatever is sent
}

var lanes = []lane{
	{"/timeline/bucket", limit.TokenBucket{Rate: permits, Per: period, Burst: permits}, 2 * permits},
	{"/timeline/window", limit.FixedWindow{Limit: permits, Window: period}, 2 * permits},
	{"/timeline/sliding", limit.SlidingWindow{Limit: permits, Window: period}, 2 * permits},
	{"/timeline/log", limit.SlidingLog{Limit: permits, Window: period}, permits},
}

func timelineRoutes(w *wiring) []Route {
	routes := make([]Route, len(lanes))
	for i, l := range lanes {
		routes[i] = limited(w, l.path, gate.ByIP(nil), l.policy)
	}
	return routes
}

// timeline sends the same requests at the same moments to every algorithm.
func (v *visit) timeline(ctx context.Context) {
	answers := make([][]answer, len(lanes))
	began := time.Now()
	err := together(len(lanes), func(i int) (err error) {
		answers[i], err = v.pace(ctx, began, lanes[i].path)
		return err
	})
	if v.failed(err) {
		return
	}
	v.headingf("%d per %s by each algorithm: %s is a request let through, %s one denied",
		permits, unit(period), v.green(passed), v.red(denied))
	v.axis()
	for i, l := range lanes {
		v.draw(l, answers[i])
	}
}

// pace sends each request in its slot, or as soon as the one before it has its
// answer.
func (v *visit) pace(ctx context.Context, began time.Time, path string) ([]answer, error) {
	answers := make([]answer, len(moments))
	for i, at := range moments {
		err := sleep(ctx, time.Until(began.Add(time.Duration(at)*slot)))
		if err == nil {
			answers[i], err = v.send(ctx, get(path))
		}
		if err != nil {
			return nil, err
		}
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
	row := slices.Repeat([]string{" "}, slots)
	for i, at := range moments {
		row[at] = v.red(denied)
		if answers[i].status == http.StatusOK {
			row[at] = v.green(passed)
		}
	}
	algorithm, _ := terms(l.policy)
	first, admitted, most := count(answers[:permits], 200), count(answers, 200), busiest(answers, period)
	ok := first == permits && most <= l.most && int(admitted+count(answers, 429)) == len(answers)
	mark := v.mark(ok, fmt.Sprintf("%s: %d of the first %d let through, at most %d in %s (expected %d, and at most %d)",
		l.path, first, permits, most, span(period), permits, l.most))
	v.linef("  %s %-*s%s  %2d of %d  %d, at worst %d", mark, labelWidth, algorithm, strings.Join(row, ""),
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
