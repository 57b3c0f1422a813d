package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// patient is a budget with which each decision is Redis' own, however busy the
// machine is.
const patient = "20s"

func TestServeHasTheSameRoutesOnEveryFramework(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 2000)
	for _, f := range frameworks {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			url := serving(t, "-framework", f.Name, "-budget", patient)
			for _, c := range []struct {
				requests string // methods and targets, one after the other
				keys     []string
				want     string
				policy   string // RateLimit-Policy on the first answer
			}{
				{"GET /detail*6", nil, "200*5 429", `"log-5-10s";q=5;w=10`},
				{"GET /window*6", nil, "200*5 429", `"window-5-10s";q=5;w=10`},
				{"GET /sliding*6", nil, "200*5 429", `"sliding-5-10s";q=5;w=10`},
				{"GET /bucket*5", nil, "200*5", `"bucket-2-1s-5";q=5;w=3`},
				{"GET /both*5", nil, "200*5", `"bucket-5-1s-5";q=5;w=1, "window-8-30s";q=8;w=30`},
				{"GET /users/alice*4", nil, "200*3 429", `"window-3-10s";q=3;w=10`},
				{"GET /users/bob HEAD /users/bob*3 GET /users/bob", nil, "200*3 429*2", `"window-3-10s";q=3;w=10`},
				{"HEAD /users/carol*4", nil, "200*3 429", `"window-3-10s";q=3;w=10`},
				{"GET /users/bo%62", nil, "429", `"window-3-10s";q=3;w=10`}, // bob, again
				{"GET /users/b%2Fb*4", nil, "200*3 429", `"window-3-10s";q=3;w=10`},
				{"GET /key*4", []string{"alice"}, "200*3 429", `"window-3-10s";q=3;w=10`},
				{"HEAD /key*4", []string{"bob"}, "200*3 429", `"window-3-10s";q=3;w=10`},
				{"GET /key HEAD /key", nil, "400*2", ""},
				{"GET /key HEAD /key", []string{"carol", "carol"}, "400*2", ""},
				{"GET /key HEAD /key", []string{long}, "400*2", ""},
				{"GET /cost GET /cost?n= GET /cost?n=x GET /cost?n=1.5 GET /cost?n=1&n=1", nil, "400*5", ""},
				{"GET /cost?n=0 GET /cost?n=-1 GET /cost?n=11", nil, "400*3", ""},
				{"GET /cost?n=99999999999999999999 HEAD /cost?n=%zz", nil, "400*2", ""},
				{"GET /cost?n=1 HEAD /cost?n=9 GET /cost?n=10", nil, "200*2 429", `"bucket-1-1s-10";q=10;w=10`},
				{"GET /shadow*5 HEAD /shadow", nil, "200*6", ""},
				{"GET /login GET /login?ok= GET /login?ok=2 GET /login?ok=yes", nil, "400*4", ""},
				{"GET /login?ok=0&ok=0 HEAD /login", nil, "400*2", ""},
				{"GET /login?ok=1*4 HEAD /login?ok=1*2", nil, "200*6", `"window-3-30s";q=3;w=30`},
				{"GET /login?ok=0*2 GET /login?ok=1*2 HEAD /login?ok=0 GET /login?ok=0 GET /login?ok=1", nil,
					"401*2 200*2 401 429*2", `"window-3-30s";q=3;w=30`},
				{"GET /inflight GET /inflight?ms=x GET /inflight?ms=-1", nil, "400*3", ""},
				{"GET /inflight?ms=10001 HEAD /inflight?ms=", nil, "400*2", ""},
				{"GET /inflight?ms=0*4 HEAD /inflight?ms=1", nil, "200*5", `"inflight";q=2;qu="concurrent-requests"`},
				{"GET /free*12 HEAD /free", nil, "200*13", ""},
				{"GET /nothing", nil, "404", ""},
				{"GET /detail/", nil, "404", ""},
				{"GET /flash/car", nil, "404", ""},
				{"POST /free GET /exclusive?ms=0 GET /orders GET /callbacks/alipay", nil, "405*4", ""},
			} {
				var got []int
				for i, r := range requests(c.requests) {
					a := ask(t, r[0], url+r[1], c.keys...)
					got = append(got, a.status)
					if policy := a.header.Get("RateLimit-Policy"); i == 0 && policy != c.policy {
						t.Errorf("%s: got RateLimit-Policy: %s, want %s", c.requests, policy, c.policy)
					}
					assertAnswer(t, r, a)
				}
				if want := statusRow(c.want); !slices.Equal(got, want) {
					t.Errorf("%s with %d keys: got %v, want %v", c.requests, len(c.keys), got, want)
				}
			}
		})
	}
}

// assertAnswer holds every answer to what goes with its status.
func assertAnswer(t *testing.T, r [2]string, a reply) {
	t.Helper()
	retry, kind := a.header.Get("Retry-After") != "", a.header.Get("Content-Type")
	switch {
	case r[0] == http.MethodHead && a.body != "":
		t.Errorf("%v: got the body %q, want none", r, a.body)
	case a.status == 200 && (r[0] == http.MethodGet && a.body != body || kind != contentType || retry):
		t.Errorf("%v: got %q, %v, want %q as text and no Retry-After", r, a.body, a.header, body)
	case a.status == 401 && (r[0] == http.MethodGet && a.body == "" || kind != contentType || retry):
		t.Errorf("%v: got %q, %v, want a text and no Retry-After", r, a.body, a.header)
	case a.status == 429 && (kind != "application/problem+json" || !retry):
		t.Errorf("%v: got %v, want a problem with Retry-After", r, a.header)
	case a.status == 400 && (kind != "application/problem+json" || retry):
		t.Errorf("%v: got %v, want a problem without Retry-After", r, a.header)
	}
}

// requests reads "GET /a*2 HEAD /b" as three methods and targets.
func requests(text string) [][2]string {
	var all [][2]string
	fields := strings.Fields(text)
	for i := 0; i < len(fields); i += 2 {
		target, times := repeated(fields[i+1])
		for range times {
			all = append(all, [2]string{fields[i], target})
		}
	}
	return all
}

// statusRow reads "200*2 429" as three statuses.
func statusRow(text string) []int {
	var all []int
	for field := range strings.FieldsSeq(text) {
		status, times := repeated(field)
		var n int
		fmt.Sscan(status, &n)
		all = append(all, slices.Repeat([]int{n}, times)...)
	}
	return all
}

func repeated(text string) (what string, times int) {
	what, n, ok := strings.Cut(text, "*")
	times = 1
	if ok {
		fmt.Sscan(n, &times)
	}
	return what, times
}

// TestInstancesOnOneRedisShareTheirLimits, and what is sold: one of them begins when some
// is sold already.
func TestInstancesOnOneRedisShareTheirLimits(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	var urls []string
	for i, f := range frameworks {
		urls = append(urls, serving(t, "-framework", f.Name, "-redis", srv.AdminURL(), "-budget", patient))
		if i == len(frameworks)-2 {
			posted{"/flash/phone", buying("early"), "", 201, contentJSON, `"item":"phone"`}.to(t, urls[0])
		}
	}
	var got []int
	for i := range 8 {
		got = append(got, ask(t, http.MethodGet, urls[i%len(urls)]+"/detail").status)
	}
	for _, url := range urls {
		assertShelf(t, url+"/flash/phone", flashUnits-1, 1)
	}
	if want := statusRow("200*5 429*3"); !slices.Equal(got, want) {
		t.Errorf("got %v from all instances in turn, want %v", got, want)
	}
	want := []string{"neap:limit:detail:{ip=127.0.0.1}:log-5-10s", "neap:stock:flash:{phone}"}
	if keys := slices.Sorted(slices.Values(keysWith(t, srv.Admin(t), ""))); !slices.Equal(keys, want) {
		t.Errorf("got the keys %q, want %q", keys, want)
	}
}

// TestServeLimitsWhileRedisIsAway is FailLocal over real HTTP: the same policy
// holds in process, and the answers tell nothing of what went wrong.
func TestServeLimitsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.NewStandalone(t)
	url := serving(t, "-framework", "gin", "-redis", server.AdminURL(), "-budget", "2s")
	if got := ask(t, http.MethodGet, url+"/window").status; got != 200 {
		t.Fatalf("got %d, want 200 while Redis is there", got)
	}
	server.Stop(t)
	var got []int
	for range 7 {
		a := ask(t, http.MethodGet, url+"/window")
		got = append(got, a.status)
		if strings.Contains(a.body, server.Addr()) || a.status == 429 && a.header.Get("Retry-After") == "" {
			t.Errorf("got %d %v %s, want no address of Redis, and Retry-After with 429", a.status, a.header, a.body)
		}
	}
	if want := statusRow("200*5 429*2"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v while Redis is away", got, want)
	}
	server.Start(t)
	redistest.Await(t, 30*time.Second, "/window after the restart", func() bool {
		return ask(t, http.MethodGet, url+"/window").status == 200
	})
}
