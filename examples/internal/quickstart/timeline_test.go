package quickstart

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// answered is what an algorithm answers that lets the marked requests through,
// one for each that is sent.
func answered(marks string, latency time.Duration) []answer {
	began := time.Now()
	var answers []answer
	for _, at := range moments {
		sent := began.Add(time.Duration(at) * slot)
		a := answer{status: 429, sent: sent, received: sent.Add(latency)}
		if n := len(answers); n < len(marks) && marks[n] == 'x' {
			a.status = 200
		}
		answers = append(answers, a)
	}
	return answers
}

func TestTheBusiestPeriodIsWhatWasSurelyLetThroughInLess(t *testing.T) {
	t.Parallel()
	// Requests are sent at 0 s, then from 0.7 s on every 50 ms.
	for _, c := range []struct {
		marks   string
		latency time.Duration
		want    int
	}{
		{"", 0, 0},
		{"x", 0, 1},
		{"xxxx", 0, 4},
		{"xxxxxxxx", 0, 7},                       // the eighth is at 1 s, which is not less
		{"x......xxxx", 0, 4},                    //
		{".xxxxxxxxxxxxxxxxxx", 0, 18},           //
		{"xxxxxxx", 40 * time.Millisecond, 7},    // the seventh is answered at 0.99 s
		{"xxxxxxx", 60 * time.Millisecond, 6},    // at 1.01 s: perhaps a second later
		{strings.Repeat("x", 40), 2 * period, 0}, // nothing is sure
	} {
		if got := busiest(answered(c.marks, c.latency), period); got != c.want {
			t.Errorf("%q, each answered after %v: got %d in the busiest period, want %d",
				c.marks, c.latency, got, c.want)
		}
	}
}

func TestALaneThatIsNotAsItsAlgorithmIsAFault(t *testing.T) {
	t.Parallel()
	const bucket, log = 0, 3
	for _, c := range []struct {
		lane  int
		marks string
		ok    bool
	}{
		{bucket, "xxxxx....x....x", true},
		{log, "xxxx", true},
		{log, "xxxxx", false},           // more than it may in a period
		{bucket, "xxxxxxxxxxxx", false}, // more than the burst and what drains
		{bucket, "xxx.x", false},        // less than it must
	} {
		var out bytes.Buffer
		v := newVisit(newScreen(&out), "net/http")
		v.draw(lanes[c.lane], answered(c.marks, 0))
		if ok := len(v.faults) == 0; ok != c.ok {
			t.Errorf("%s with %q: got the faults %v, want none: %t", lanes[c.lane].path, c.marks, v.faults, c.ok)
		}
		if got, want := strings.Count(out.String(), passed), strings.Count(c.marks, "x"); got != want {
			t.Errorf("%q: got %d requests drawn as let through, want %d:\n%s", c.marks, got, want, out.String())
		}
	}
}
