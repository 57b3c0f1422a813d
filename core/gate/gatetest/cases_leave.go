package gatetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// capturing serves one route, /detail, for GET and HEAD. Its gate captures that many
// bytes. capturing returns what Leave of this gate is called with.
func capturing(t *testing.T, d Driver, capture int64, h Handler) (address string, l *leaves) {
	l = watch(t)
	return d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/detail", Handler: h,
		Gates: []gate.Gate{pass(gate.Pass{
			Header: []gate.Field{{Name: "X-Gate", Value: "1"}}, Capture: capture, Leave: l.leave,
		})},
	}}}), l
}

func leaveSees(t *testing.T, d Driver) {
	address, l := capturing(t, d, 100, say(404, "nothing here"))
	lines := []string{"Content-Type: " + plain, "X-Gate: 1"}
	get(t, address, "/detail").is(t, 404, "nothing here", lines...)
	replies := l.all()
	if len(replies) != 1 {
		t.Fatalf("when the response had ended, Leave had been called %d times, want 1", len(replies))
	}
	l.expect(1)
	seen(t, replies[0]).is(t, 404, "nothing here", lines...)
	whole(t, replies[0])
}

func whole(t testing.TB, r *gate.Reply) {
	t.Helper()
	if r.Partial {
		t.Errorf("the captured body %q is marked as partial, want it whole", r.Body)
	}
}

func partial(t testing.TB, r *gate.Reply) {
	t.Helper()
	if !r.Partial {
		t.Errorf("the captured body %q is marked as whole, want it partial", r.Body)
	}
}

func captureLimit(t *testing.T, d Driver) {
	const body = "0123456789"
	lines := []string{"Content-Type: " + plain, "X-Gate: 1"}
	for _, c := range []struct {
		capture int64
		want    string
		check   func(testing.TB, *gate.Reply)
	}{
		{0, "", partial}, {1, "0", partial}, {9, "012345678", partial}, {10, body, whole}, {11, body, whole},
	} {
		address, l := capturing(t, d, c.capture, say(200, body))
		l.expect(1)
		get(t, address, "/detail").is(t, 200, body, lines...)
		r := l.await(1)[0]
		seen(t, r).is(t, 200, c.want, lines...)
		c.check(t, r)
	}
	address, l := capturing(t, d, 0, say(200, ""))
	l.expect(1)
	get(t, address, "/detail").is(t, 200, "", lines...)
	whole(t, l.await(1)[0])
}

func captureLarge(t *testing.T, d Driver) {
	body := strings.Repeat("0123456789abcdef", 1<<16)
	lines := []string{"Content-Type: " + plain, "X-Gate: 1"}
	for _, capture := range []int64{100, 2 << 20} {
		address, l := capturing(t, d, capture, say(200, body))
		l.expect(1)
		get(t, address, "/detail").is(t, 200, body, lines...)
		r := l.await(1)[0]
		seen(t, r).is(t, 200, body[:min(capture, int64(len(body)))], lines...)
		if r.Partial != (capture < int64(len(body))) {
			t.Errorf("capturing %d of %d bytes: got Partial %t, want %t", capture, len(body), r.Partial, !r.Partial)
		}
	}
}

func leaveWithoutBody(t *testing.T, d Driver) {
	for _, c := range []struct {
		method string
		status int
		sent   string
		lines  []string
	}{
		{"HEAD", 200, "the body of GET", []string{"Content-Type: " + plain, "X-Gate: 1"}},
		{"GET", 204, "", []string{"X-Gate: 1"}},
		{"GET", 304, "", []string{"X-Gate: 1"}},
	} {
		address, l := capturing(t, d, 100, func(x Exchange) error {
			if c.sent != "" {
				x.SetHeader("Content-Type", plain)
			}
			return x.Send(c.status, c.sent)
		})
		l.expect(1)
		dial(t, address).do(c.method, "/detail").is(t, c.status, "", c.lines...)
		r := l.await(1)[0]
		seen(t, r).is(t, c.status, "", c.lines...)
		whole(t, r)
	}
}

// leaveAgrees lets the framework decide what is sent, and checks only that Leave sees
// what the client does.
func leaveAgrees(t *testing.T, d Driver) {
	for name, h := range map[string]Handler{
		"NothingWritten": func(x Exchange) error {
			x.SetHeader("X-Handler", "1")
			return nil
		},
		"NoContentType": func(x Exchange) error { return x.Send(200, "<html><p>guess") },
		"HeaderAfterTheBody": func(x Exchange) error {
			err := say(200, "ok")(x)
			x.SetHeader("X-Late", "1")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			address, l := capturing(t, d, 100, h)
			l.expect(1)
			a := get(t, address, "/detail")
			if a.status != 200 {
				t.Errorf("got %d, want 200", a.status)
			}
			seen(t, l.await(1)[0]).is(t, a.status, a.body, visible(a.header)...)
		})
	}
}

func leaveOrder(t *testing.T, d Driver) {
	var mu sync.Mutex
	var order []string
	note := func(event string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, event)
	}
	l := watch(t)
	l.expect(4)
	named := func(name string, capture int64) gate.Gate {
		return enter(func(gate.Request) gate.Pass {
			note("enter " + name)
			return gate.Pass{
				Header:  []gate.Field{{Name: "X-Order", Value: name, Add: true}},
				Capture: capture,
				Leave: func(r *gate.Reply) {
					note("leave " + name)
					l.leave(r)
				},
			}
		})
	}
	address := d.Serve(t, App{
		Gates: []gate.Gate{named("1", 1), named("2", 2)},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Gates: []gate.Gate{named("3", 3), named("4", 4)},
			Handler: func(x Exchange) error {
				note("handler")
				return say(200, "0123")(x)
			},
		}},
	})
	lines := []string{"Content-Type: " + plain, "X-Order: 1", "X-Order: 2", "X-Order: 3", "X-Order: 4"}
	get(t, address, "/detail").is(t, 200, "0123", lines...)
	for i, r := range l.await(4) {
		seen(t, r).is(t, 200, "0123"[:4-i], lines...)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{
		"enter 1", "enter 2", "enter 3", "enter 4", "handler", "leave 4", "leave 3", "leave 2", "leave 1",
	}
	if !slices.Equal(order, want) {
		t.Errorf("got the order %v, want %v", order, want)
	}
}

// leaveInnerReply: for an outer gate, the answer of an inner gate is a response like any
// other. If it is a refusal, the outer gate knows.
func leaveInnerReply(t *testing.T, d Driver) {
	type mount func(watching, inner gate.Gate) []gate.Gate
	apart := func(watching, inner gate.Gate) []gate.Gate { return []gate.Gate{watching, inner} }
	chained := func(watching, inner gate.Gate) []gate.Gate { return []gate.Gate{gate.Chain(watching, inner)} }
	for name, c := range map[string]struct {
		status  int
		refused bool
		mount   mount
	}{
		"Refusal": {429, true, apart}, "RefusalInAChain": {429, true, chained}, "RefusalWithoutABody": {304, true, apart},
		"RefusalThatLooksFine": {200, true, apart}, "Answer": {429, false, apart}, "AnswerInAChain": {429, false, chained},
	} {
		t.Run(name, func(t *testing.T) {
			l := watch(t)
			l.expect(4)
			watching := pass(gate.Pass{Capture: 100, Leave: l.leave})
			reply, lines := gate.Reply{Status: c.status, Refused: c.refused}, []string{"X-Inner: 1"}
			if gate.BodyAllowed(c.status) {
				reply.Header, reply.Body = []gate.Field{{Name: "Content-Type", Value: plain}}, []byte("too many")
				lines = append(lines, "Content-Type: "+plain)
			}
			address := d.Serve(t, App{
				Gates: []gate.Gate{watching},
				Routes: []Route{{
					Method: "GET", Pattern: "/detail", Around: []Middleware{wrapping}, Handler: never(t),
					Gates: c.mount(watching, pass(gate.Pass{Header: []gate.Field{{Name: "X-Inner", Value: "1"}}, Reply: &reply})),
				}},
			})
			get(t, address, "/detail").is(t, c.status, string(reply.Body), lines...)
			dial(t, address).do("HEAD", "/detail").is(t, c.status, "", lines...)
			for i, r := range l.await(4) {
				want := string(reply.Body)
				if i > 1 {
					want = ""
				}
				seen(t, r).is(t, c.status, want, lines...)
				whole(t, r)
				if r.Refused != c.refused {
					t.Errorf("Leave saw a reply with Refused %t, want %t", r.Refused, c.refused)
				}
			}
		})
	}
}

func leaveConcurrently(t *testing.T, d Driver) {
	const clients = 64
	requests := 20
	if testing.Short() {
		requests = 4
	}
	var mu sync.Mutex
	left := map[string][]*gate.Reply{}
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/users/{id}",
		Gates: []gate.Gate{enter(func(q gate.Request) gate.Pass {
			id := q.Param("id")
			return gate.Pass{
				Header:  []gate.Field{{Name: "X-Gate", Value: id}},
				Capture: 1 << 10,
				Leave: func(r *gate.Reply) {
					mu.Lock()
					defer mu.Unlock()
					left[id] = append(left[id], r)
				},
			}
		})},
		Handler: func(x Exchange) error {
			id := x.Param("id")
			n, _ := strconv.Atoi(id)
			x.SetHeader("X-Handler", strings.Clone(id))
			return say(200+n%3, strings.Repeat(id+" ", n%50+1))(x)
		},
	}}})
	answers := make([][]answer, clients)
	var wg sync.WaitGroup
	for i := range clients {
		c := dial(t, address)
		wg.Go(func() {
			for j := range requests {
				a, err := c.try("GET", fmt.Sprintf("/users/%d", 10_000+i*requests+j), "")
				if err != nil {
					t.Error(err)
					return
				}
				answers[i] = append(answers[i], a)
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	for i := range clients {
		for j, a := range answers[i] {
			n := 10_000 + i*requests + j
			id := strconv.Itoa(n)
			a.is(t, 200+n%3, strings.Repeat(id+" ", n%50+1),
				"Content-Type: "+plain, "X-Gate: "+id, "X-Handler: "+id)
			if len(left[id]) != 1 {
				t.Errorf("Leave was called %d times for request %s, want 1", len(left[id]), id)
				continue
			}
			seen(t, left[id][0]).is(t, a.status, a.body, visible(a.header)...)
		}
	}
}
