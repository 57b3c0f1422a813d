package neaptest

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// AssertLimited sends n requests, one after the other, to the instances in turn, and then one more. It fails the test
// unless the n pass, and the last is refused with a 429 and a Retry-After of a second at least. A request passes with
// any answer but 429 and 5xx: your handler may refuse a login, and the login still counts.
func AssertLimited(tb testing.TB, n int, newRequest func() *http.Request, instances ...Send) {
	tb.Helper()
	if !some(tb, "AssertLimited", instances) {
		return
	}
	if n < 0 {
		tb.Errorf("AssertLimited: got the limit %d, want 0 or more", n)
		return
	}
	for i := range n + 1 {
		a := instances[i%len(instances)].ask(newRequest())
		switch {
		case i < n && (a.err != nil || a.status == http.StatusTooManyRequests || a.status >= 500):
			tb.Errorf("AssertLimited: request %d of %d: got %v, want it to pass", i+1, n, a)
			return
		case i == n && a.status != http.StatusTooManyRequests:
			tb.Errorf("AssertLimited: request %d, one more than the limit: got %v, want 429", i+1, a)
		case i == n:
			if seconds, err := strconv.Atoi(a.retryAfter); err != nil || seconds < 1 {
				tb.Errorf("AssertLimited: request %d, one more than the limit: got a 429 with the Retry-After %q, want a number of seconds from 1 on",
					i+1, a.retryAfter)
			}
		}
	}
}

// AssertRunsOnce sends the same request many times: eight times at once, or twice to each instance if that is more, and
// then once more to each; a limit before the guard must let as many pass. It fails the test unless the work runs once, all the later requests get the same result, and
// each of those at once gets that result or a refusal that tells it to come back: a 503, or a 409, 425 or 429 with a
// Retry-After. Results are the same if their status and body are. newRequest makes the same request each time, such as
// one with the same Idempotency-Key or the same signed event. The handler counts with work.
func AssertRunsOnce(tb testing.TB, work *Work, newRequest func() *http.Request, instances ...Send) {
	tb.Helper()
	if !some(tb, "AssertRunsOnce", instances) {
		return
	}
	var atOnce, later []answer
	runs, _ := work.watched(func() {
		atOnce = volley(newRequest, instances)
		for _, send := range instances {
			later = append(later, send.ask(newRequest()))
		}
	})
	if runs != 1 {
		tb.Errorf("AssertRunsOnce: the work ran %d times, want once; the answers were %s", runs, list(append(atOnce, later...)))
	}
	result := later[0]
	for _, a := range later {
		if a.again() || !a.same(result) {
			tb.Errorf("AssertRunsOnce: when the work was done, the answers to the same request were %s, want one result", list(later))
			break
		}
	}
	for _, a := range atOnce {
		if !a.same(result) && !a.again() {
			tb.Errorf("AssertRunsOnce: while the work ran, the same request got %v, want %v or a refusal that tells it to come back", a, result)
			break
		}
	}
}

// AssertOneAtATime sends eight requests at once, or two to each instance if that is more, and fails the test if two runs
// of the work overlap, or if there is no run. Requests may wait or be refused. newRequest makes requests about one and the same
// thing, such as one order. The handler counts with work.
func AssertOneAtATime(tb testing.TB, work *Work, newRequest func() *http.Request, instances ...Send) {
	tb.Helper()
	if !some(tb, "AssertOneAtATime", instances) {
		return
	}
	var answers []answer
	runs, atOnce := work.watched(func() { answers = volley(newRequest, instances) })
	if runs == 0 || atOnce != 1 {
		tb.Errorf("AssertOneAtATime: the work ran %d times, %d of them at one time, want some, and one at a time; the answers were %s",
			runs, atOnce, list(answers))
	}
}

// some reports whether there are instances.
func some(tb testing.TB, assert string, instances []Send) bool {
	tb.Helper()
	if len(instances) == 0 {
		tb.Errorf("%s: got no instance, want one Send at least", assert)
	}
	return len(instances) > 0
}

// volley sends requests at once: eight, or two to each instance if that is more.
func volley(newRequest func() *http.Request, instances []Send) []answer {
	answers := make([]answer, max(8, 2*len(instances)))
	var all sync.WaitGroup
	for i := range answers {
		r := newRequest()
		all.Go(func() { answers[i] = instances[i%len(instances)].ask(r) })
	}
	all.Wait()
	return answers
}

// list has each answer once, in their order, with how often it came.
func list(answers []answer) string {
	var texts []string
	count := map[string]int{}
	for _, a := range answers {
		text := a.String()
		if count[text] == 0 {
			texts = append(texts, text)
		}
		count[text]++
	}
	for i, text := range texts {
		texts[i] = strconv.Itoa(count[text]) + "× " + text
	}
	return strings.Join(texts, ", ")
}
