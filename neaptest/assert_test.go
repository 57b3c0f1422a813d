package neaptest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/store"
)

func plain() *http.Request { return httptest.NewRequest("GET", "/", nil) }

// statuses answers with one status after the other, and then with the last.
func statuses(header string, all ...int) Send {
	var n atomic.Int64
	return Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if header != "" {
			w.Header().Set("Retry-After", header)
		}
		w.WriteHeader(all[min(int(n.Add(1)), len(all))-1])
	}))
}

func TestAssertLimited(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		var instances []Send
		for range 2 {
			l := limiter(t, r.Client(), 3, store.FailClosed)
			instances = append(instances, behind(func(http.ResponseWriter, *http.Request) {}, gate.RateLimit(l, everybody, nil)))
		}
		for range 2 {
			AssertLimited(t, 3, plain, instances...)
			time.Sleep(10 * time.Minute)
		}
	})
}

func TestAssertLimitedFails(t *testing.T) {
	t.Parallel()
	broken := func(*http.Request) (*http.Response, error) { return nil, errors.New("broken") }
	for name, c := range map[string]struct {
		send Send
		want []string
	}{
		"exactly":        {statuses("1", 200, 401, 429), nil},
		"too early":      {statuses("1", 200, 429), []string{`request 2 of 2: got 429 "", want it to pass`}},
		"too late":       {statuses("1", 200, 200, 200, 429), []string{`request 3, one more than the limit: got 200 "", want 429`}},
		"out of order":   {statuses("1", 503), []string{`request 1 of 2: got 503 "", want it to pass`}},
		"another status": {statuses("1", 200, 200, 403), []string{`request 3, one more than the limit: got 403 "", want 429`}},
		"without a wait": {statuses("", 200, 200, 429), []string{`got a 429 with the Retry-After "", want a number of seconds`}},
		"no wait":        {statuses("0", 200, 200, 429), []string{`got a 429 with the Retry-After "0", want a number of seconds`}},
		"broken":         {broken, []string{"request 1 of 2: got no answer (broken), want it to pass"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := &recorder{TB: t}
			AssertLimited(rec, 2, plain, c.send)
			rec.says(t, c.want...)
		})
	}
}

// TestAssertRunsOnce has two instances with one guard run an order once.
func TestAssertRunsOnce(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*gate.IdempotentOptions{"refused": nil, "waiting": {Wait: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, r *Redis) {
				var work Work
				var instances []Send
				for range 2 {
					instances = append(instances, behind(created(&work), gate.Idempotent(guard(t, r.Client()), gate.Everyone, opts)))
				}
				AssertRunsOnce(t, &work, order, instances...)
				if work.Runs() != 1 {
					t.Errorf("got %d runs, want 1", work.Runs())
				}
			})
		})
	}
}

func TestAssertRunsOnceFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shop func(t *testing.T, r *Redis, work *Work) []Send
		want []string
	}{
		"no guard": {
			func(_ *testing.T, _ *Redis, work *Work) []Send { return []Send{behind(created(work))} },
			[]string{`the work ran 9 times, want once; the answers were 9× 201 "booked"`},
		},
		"a guard each": {
			func(t *testing.T, r *Redis, work *Work) []Send {
				own := New(t)
				return []Send{
					behind(created(work), gate.Idempotent(guard(t, r.Client()), gate.Everyone, nil)),
					behind(created(work), gate.Idempotent(guard(t, own.Client()), gate.Everyone, nil)),
				}
			},
			[]string{`the work ran 2 times, want once; the answers were`},
		},
		"Redis is gone": {
			func(t *testing.T, r *Redis, work *Work) []Send {
				g := guard(t, r.Client())
				r.Lose()
				return []Send{behind(created(work), gate.Idempotent(g, gate.Everyone, nil))}
			},
			[]string{"the work ran 0 times, want once; the answers were 9× 503 ", "when the work was done, the answers to the same request were 1× 503 "},
		},
		"an answer of its own each": {
			func(_ *testing.T, _ *Redis, work *Work) []Send {
				var n atomic.Int64
				return []Send{behind(func(w http.ResponseWriter, _ *http.Request) {
					defer work.Begin()()
					fmt.Fprint(w, n.Add(1) < 9)
				})}
			},
			[]string{`the work ran 9 times`, `while the work ran, the same request got 200 "true", want 200 "false" or a refusal`},
		},
		"a status of its own": {
			func(_ *testing.T, _ *Redis, work *Work) []Send {
				var n atomic.Int64
				return []Send{behind(func(w http.ResponseWriter, _ *http.Request) {
					switch n.Add(1) {
					case 1:
						work.Begin()()
					case 9:
						w.WriteHeader(http.StatusCreated)
					}
				})}
			},
			[]string{`while the work ran, the same request got 200 "", want 201 ""`},
		},
		"an answer that was not kept": {
			func(t *testing.T, r *Redis, work *Work) []Send {
				return []Send{behind(created(work), gate.Idempotent(guard(t, r.Client()), gate.Everyone, &gate.IdempotentOptions{MaxResponse: 1}))}
			},
			[]string{`while the work ran, the same request got 201 "booked", want 409 `},
		},
		"a panic": {
			func(*testing.T, *Redis, *Work) []Send {
				return []Send{behind(func(http.ResponseWriter, *http.Request) { panic("oh") })}
			},
			[]string{"the work ran 0 times", "no answer (the handler panicked: oh", "no answer (the handler panicked: oh"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, r *Redis) {
				var work Work
				rec := &recorder{TB: t}
				AssertRunsOnce(rec, &work, order, c.shop(t, r, &work)...)
				rec.says(t, c.want...)
			})
		})
	}
}

func TestAssertOneAtATime(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*gate.ExclusiveOptions{"refused": nil, "waiting": {Wait: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, r *Redis) {
				var work Work
				var instances []Send
				for range 2 {
					instances = append(instances, behind(created(&work), gate.Exclusive(locker(t, r.Client(), 0), everybody, opts)))
				}
				AssertOneAtATime(t, &work, order, instances...)
				want := 1
				if opts != nil {
					want = 8
				}
				if work.Runs() != want || work.AtOnce() != 1 {
					t.Errorf("got %d runs, %d at one time, want %d, and 1 at one time", work.Runs(), work.AtOnce(), want)
				}
			})
		})
	}
}

func TestAssertOneAtATimeFails(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		var work Work
		rec := &recorder{TB: t}
		AssertOneAtATime(rec, &work, order, behind(created(&work)))
		l := locker(t, r.Client(), 0)
		r.Lose()
		AssertOneAtATime(rec, &work, order, behind(created(&work), gate.Exclusive(l, everybody, nil)))
		rec.says(t, `the work ran 8 times, 8 of them at one time, want some, and one at a time; the answers were 8× 201 "booked"`,
			"the work ran 0 times, 0 of them at one time, want some")
		if work.AtOnce() != 8 {
			t.Errorf("got %d runs at one time, want 8 still", work.AtOnce())
		}
	})
}

// TestEachInstanceHasItsTurn has one of two alone be broken.
func TestEachInstanceHasItsTurn(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		rec := &recorder{TB: t}
		AssertLimited(rec, 2, plain, statuses("1", 200, 429), statuses("1", 503))
		var work Work
		var instances []Send
		for _, redis := range []*Redis{r, New(t)} {
			instances = append(instances, behind(created(&work), gate.Exclusive(locker(t, redis.Client(), 0), everybody, nil)))
		}
		AssertOneAtATime(rec, &work, order, instances...)
		rec.says(t, `request 2 of 2: got 503 "", want it to pass`, "the work ran 2 times, 2 of them at one time, want some")
	})
}

func TestAssertLimitedWantsALimit(t *testing.T) {
	t.Parallel()
	rec := &recorder{TB: t}
	AssertLimited(rec, -1, plain, statuses("1", 200))
	rec.says(t, "got the limit -1, want 0 or more")
}

func TestAssertsWantAnInstance(t *testing.T) {
	t.Parallel()
	rec := &recorder{TB: t}
	var work Work
	AssertLimited(rec, 1, plain)
	AssertRunsOnce(rec, &work, plain)
	AssertOneAtATime(rec, &work, plain)
	const want = "got no instance, want one Send at least"
	rec.says(t, want, want, want)
}

func TestWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var work Work
		began := time.Now()
		work.Begin()()
		one := work.Begin()
		one()
		one() // again, which changes nothing
		defer work.Begin()()
		defer work.Begin()()
		if work.Runs() != 4 || work.AtOnce() != 2 || time.Since(began) != 0 {
			t.Errorf("got %d runs, %d at one time, in %v, want 4, 2 and no time", work.Runs(), work.AtOnce(), time.Since(began))
		}
	})
}

func TestHandler(t *testing.T) {
	t.Parallel()
	var got *http.Request
	send := Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header()["Neap-Refused-429"] = nil
		w.Header().Set("X-Real", "yes")
		w.WriteHeader(418)
	}))
	sent := must(http.NewRequestWithContext(t.Context(), "GET", "http://shop.example/orders?page=2", nil))(t)
	response := must(send(sent))(t)
	if response.StatusCode != 418 || len(response.Header) != 1 || response.Header.Get("X-Real") != "yes" {
		t.Errorf("got %d with the header %v, want 418 with X-Real alone", response.StatusCode, response.Header)
	}
	if got.RequestURI != "/orders?page=2" || got.Host != "shop.example" || got.RemoteAddr == "" || got.Body == nil || sent.RequestURI != "" {
		t.Errorf("the handler got %+v, want what a server fills in, and only there", got)
	}
}

// TestTwoClientsAreTwoInstances has one of them alone decide without Redis.
func TestTwoClientsAreTwoInstances(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, r *Redis) {
		here, there := r.Client(), r.Client()
		degraded := map[*redis.Client]bool{}
		for _, rdb := range []*redis.Client{here, there} {
			if rdb == here {
				r.Lose(here)
			}
			d, err := limiter(t, rdb, 3, store.FailLocal).Take(t.Context(), "ann")
			if err != nil {
				t.Error(err)
			}
			degraded[rdb] = d.Degraded
		}
		if !degraded[here] || degraded[there] {
			t.Errorf("got %v for the one without Redis and %v for the other, want true and false", degraded[here], degraded[there])
		}
	})
}
