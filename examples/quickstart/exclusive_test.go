package main

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

var fenceAnswer = regexp.MustCompile(`^\{"fence":([1-9][0-9]*)\}\n$`)

// fenceOf fails the test unless the answer is that of a request that had the lock.
func fenceOf(t *testing.T, a reply) int64 {
	t.Helper()
	match := fenceAnswer.FindStringSubmatch(a.body)
	if a.status != 200 || match == nil || a.header.Get("Content-Type") != contentJSON {
		t.Errorf("got %d %v %q, want 200 and a fence in JSON", a.status, a.header, a.body)
		return 0
	}
	fence, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		t.Error(err)
	}
	return fence
}

// TestOneAtATime holds an order's lock on every framework: another request for
// it is refused meanwhile, and let in when the first has ended.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	for _, f := range frameworks {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			url := serving(t, "-framework", f.Name, "-budget", patient) + "/exclusive"
			for _, bad := range []struct {
				query  string
				orders []string
			}{
				{"?ms=0", nil}, {"?ms=0", []string{""}}, {"?ms=0", []string{"17", "17"}},
				{"?ms=0", []string{strings.Repeat("1", 2000)}},
				{"", nil}, {"?ms=", []string{"17"}}, {"?ms=x", []string{"17"}}, {"?ms=-1", []string{"17"}},
				{"?ms=10001", []string{"17"}}, {"?ms=1&ms=1", []string{"17"}},
			} {
				a := post(t.Context(), url+bad.query, bad.orders...)
				if a.status != 400 || a.header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("%q with %d orders: got %d %v, want 400 and a problem",
						bad.query, len(bad.orders), a.status, a.header)
				}
			}
			if got := ask(t, http.MethodGet, url+"?ms=0").status; got != 405 {
				t.Errorf("got %d, want 405 for GET", got)
			}

			last := fenceOf(t, post(t.Context(), url, "17"))
			ctx, leave := context.WithTimeout(t.Context(), time.Minute) // for a lock that is never released
			defer leave()
			ended := make(chan reply, 1)
			hold := func(ms string) {
				go func() {
					for {
						a := post(ctx, url+"?ms="+ms, "17")
						if a.status != 409 { // a probe may be in the way
							ended <- a
							return
						}
					}
				}()
				var held reply
				redistest.Await(t, 20*time.Second, "the lock to be held", func() bool {
					held = post(t.Context(), url+"?ms=0", "17")
					return held.status == 409
				})
				if held.header.Get("Retry-After") != "1" || held.header.Get("Content-Type") != contentProblem ||
					strings.Contains(held.body, "17") {
					t.Errorf("got %v %s, want a problem with Retry-After: 1 that does not name the order",
						held.header, held.body)
				}
			}
			hold("2000")
			fenceOf(t, post(t.Context(), url+"?ms=0", "18"))
			first := fenceOf(t, <-ended)
			next := fenceOf(t, post(t.Context(), url+"?ms=1", "17"))
			if first <= last || next <= first {
				t.Errorf("got the fences %d, %d and %d, want each larger than the one before", last, first, next)
			}

			if strings.HasPrefix(f.Name, "fiber") || f.Name == "hertz" { // they do not tell that a client has gone
				return
			}
			hold("10000")
			leave()
			<-ended
			redistest.Await(t, 5*time.Second, "the lock of a client that went away", func() bool {
				return post(t.Context(), url+"?ms=0", "17").status == 200
			})
		})
	}
}
