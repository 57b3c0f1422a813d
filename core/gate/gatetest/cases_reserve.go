package gatetest

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/stock"
)

const (
	buyer = "X-Buyer"
	phone = "phone"
)

// newStock makes a stock of phones with a Redis of its own, and a budget for a busy
// machine.
func newStock(t testing.TB, d Driver, units int64) *stock.Stock {
	t.Helper()
	s, err := stock.New(d.Redis(t), "gatetest", &stock.Options{Budget: patience(), Lease: lasting()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), phone, units, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return s
}

// selling serves POST /flash/{item}.
func selling(s *stock.Stock, opts *gate.ReserveOptions, h Handler) Route {
	return Route{
		Method: "POST", Pattern: "/flash/{item}", Handler: h,
		Gates: []gate.Gate{gate.Reserve(s, gate.ByParam("item"), gate.ByHeader(buyer), opts)},
	}
}

// flash asks for a phone on a connection of its own.
func flash(t testing.TB, address, query, who string) answer {
	t.Helper()
	return dial(t, address).post("/flash/"+phone+query, "", buyer+": "+who)
}

// reserved finds the reservation as a handler does.
func reserved(t testing.TB, x Exchange) *stock.Reservation {
	t.Helper()
	own, ok := stock.FromContext(x.Context())
	if !ok || own.Err() != nil || own.Item() != phone || own.Buyer() != "header:x-buyer="+x.Query("who") {
		t.Errorf("the handler found the reservation %+v, %v, want one of a %s by %s that is in force",
			own, ok, phone, x.Query("who"))
		return new(stock.Reservation)
	}
	return own
}

// stands fails the test unless this many phones are left, held and sold.
func stands(t testing.TB, s *stock.Stock, left, held, sold int64) {
	t.Helper()
	l, err := s.Left(t.Context(), phone)
	if err != nil || l.Left != left || l.Held != held || l.Sold != sold {
		t.Errorf("got the stock %+v, %v, want %d left, %d held and %d sold", l, err, left, held, sold)
	}
}

// isRefused fails the test unless the answer is exactly this problem.
func (a answer) isRefused(t testing.TB, status int, kind, title string) {
	t.Helper()
	a.is(t, status, fmt.Sprintf(`{"type":%q,"title":%q,"status":%d}`+"\n", gate.TypeStock+kind, title, status),
		"Cache-Control: no-store", "Content-Type: application/problem+json")
}

// reserveAnswers: which requests are refused, and how.
func reserveAnswers(t *testing.T, d Driver) {
	for name, atOnce := range map[string]bool{"Lease": false, "AtOnce": true} {
		t.Run(name, func(t *testing.T) {
			s := newStock(t, d, 2)
			outside := func(x Exchange, next func() error) error {
				before := x.Context()
				defer func() {
					if _, found := stock.FromContext(x.Context()); found || x.Context() != before {
						t.Error("the reservation's context stays on the request, want the one from before")
					}
				}()
				return next()
			}
			route := selling(s, &gate.ReserveOptions{Confirm: atOnce}, func(x Exchange) error {
				if own := reserved(t, x); own.Confirmed() != atOnce {
					t.Errorf("before the answer: got confirmed %t, want %t", own.Confirmed(), atOnce)
				}
				return say(201, "yours")(x)
			})
			route.Around = []Middleware{outside}
			address := d.Serve(t, App{Routes: []Route{route}})
			for i, who := range []string{"ann", "bob"} {
				flash(t, address, "?who="+who, who).is(t, 201, "yours", "Content-Type: "+plain)
				stands(t, s, int64(1-i), 0, int64(i+1))
				flash(t, address, "", who).isRefused(t, 409, "already-yours", "The buyer has the item already")
			}
			flash(t, address, "", "cid").isRefused(t, 409, "sold-out", "There are not as many left")
			dial(t, address).post("/flash/car", "", buyer+": ann").isRefused(t, 404, "unknown-item", "There is no such item")
			for _, lines := range [][]string{nil, {buyer + ":"}, {buyer + ": dan", buyer + ": dan"}} {
				if a := dial(t, address).post("/flash/"+phone, "", lines...); a.status != 400 {
					t.Errorf("with %q: got %d, want 400", lines, a.status)
				}
			}
			stands(t, s, 0, 0, 2)
		})
	}
}

// reserveExact: of many concurrent buyers, as many get a phone as there are phones.
func reserveExact(t *testing.T, d Driver) {
	const units, buyers = 10, 30
	s := newStock(t, d, units)
	address := d.Serve(t, App{Routes: []Route{selling(s, nil, say(201, "yours"))}})
	var sold, out atomic.Int64
	var wg sync.WaitGroup
	for i := range buyers {
		c := dial(t, address)
		wg.Go(func() {
			switch a, err := c.try("POST", "/flash/"+phone, "", fmt.Sprintf("%s: b%d", buyer, i), "Content-Length: 0"); {
			case err != nil:
				t.Error(err)
			case a.status == 201:
				sold.Add(1)
			case a.status == 409:
				out.Add(1)
			default:
				t.Errorf("got %d, want 201 or 409", a.status)
			}
		})
	}
	wg.Wait()
	if sold.Load() != units || out.Load() != buyers-units {
		t.Errorf("%d were sold and %d refused, want %d and %d", sold.Load(), out.Load(), units, buyers-units)
	}
	stands(t, s, 0, 0, units)
}

// reserveOutcome: when the client has read its answer, the unit is sold or back in stock.
func reserveOutcome(t *testing.T, d Driver) {
	for name, atOnce := range map[string]bool{"Lease": false, "AtOnce": true} {
		t.Run(name, func(t *testing.T) {
			s := newStock(t, d, 1)
			address := d.Serve(t, App{
				OnError: func(x Exchange, _ error) { _ = x.Send(503, "rendered") },
				Routes: []Route{selling(s, &gate.ReserveOptions{Confirm: atOnce}, func(x Exchange) error {
					own := reserved(t, x)
					switch x.Query("how") {
					case "refuses":
						return say(422, "no")(x)
					case "breaks":
						return say(500, "no")(x)
					case "panics":
						panic("gatetest: a handler panics")
					case "returns":
						return errors.New("gatetest: a handler returns an error")
					case "confirms":
						if err := own.Confirm(x.Context()); err != nil {
							t.Error(err)
						}
						return say(500, "yours")(x)
					}
					return say(303, "yours")(x)
				})},
			})
			want := map[string]int{"refuses": 422, "breaks": 500, "panics": 500}
			if d.Errors != NoErrors {
				want["returns"] = 503
			}
			for how, status := range want {
				if a := flash(t, address, "?who=ann&how="+how, "ann"); a.status != status {
					t.Errorf("%s: got %d %q, want %d", how, a.status, a.body, status)
				}
				if how == "panics" || how == "returns" { // the answer may be made outside
					await(t, "the unit to be back", func() bool { l, _ := s.Left(t.Context(), phone); return l.Left == 1 })
				}
				stands(t, s, 1, 0, 0)
			}
			flash(t, address, "?who=ann&how=confirms", "ann").is(t, 500, "yours", "Content-Type: "+plain)
			stands(t, s, 0, 0, 1)
			if _, err := s.Forget(t.Context(), phone); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Open(t.Context(), phone, 1, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			flash(t, address, "?who=ann", "ann").is(t, 303, "yours", "Content-Type: "+plain)
			stands(t, s, 0, 0, 1)
		})
	}
}

// reserveGone: a client that goes away keeps its unit if the handler succeeds, and loses
// it if the handler gives up.
func reserveGone(t *testing.T, d Driver) {
	for name, succeeds := range map[string]bool{"Succeeds": true, "GivesUp": false} {
		t.Run(name, func(t *testing.T) {
			if !succeeds && !d.Disconnect {
				t.Skip("a request does not end with its client")
			}
			s := newStock(t, d, 1)
			running, finish := make(chan struct{}, 16), make(chan struct{})
			end := sync.OnceFunc(func() { close(finish) })
			defer end() // or a server with a bug would wait for ever
			ended := make(chan struct{}, 16)
			address := d.Serve(t, App{Routes: []Route{selling(s, nil, func(x Exchange) error {
				own := reserved(t, x)
				running <- struct{}{}
				if d.Disconnect {
					select {
					case <-x.Context().Done():
					case <-finish:
						t.Error("the handler's context did not end, want it to end with its client")
					}
				}
				if err := own.Err(); err != nil {
					t.Errorf("while the handler ran: the reservation has the error %v, want none", err)
				}
				ended <- struct{}{}
				if !succeeds {
					return nil
				}
				<-finish
				return say(http.StatusCreated, "yours")(x)
			})}})
			gone := dial(t, address)
			if err := gone.write("POST", "/flash/"+phone+"?who=ann", "", buyer+": ann", "Content-Length: 0"); err != nil {
				t.Fatal(err)
			}
			next(t, "the handler to run", running)
			if succeeds {
				stands(t, s, 0, 1, 0)
			}
			_ = gone.conn.Close()
			next(t, "the handler's context to end", ended)
			end()
			await(t, "the end of the reservation", func() bool {
				n := s.Stats()
				return succeeds && n.Confirmed == 1 || !succeeds && n.Cancellations == 1
			})
			if succeeds {
				stands(t, s, 0, 0, 1)
			} else {
				stands(t, s, 1, 0, 0)
			}
		})
	}
}

// reserveOuter: a limit outside counts a request that finds no unit. A request that a
// limit inside refuses gives its unit back.
func reserveOuter(t *testing.T, d Driver) {
	for name, mount := range map[string]func(outer, own, inner gate.Gate) []gate.Gate{
		"Apart": func(outer, own, inner gate.Gate) []gate.Gate { return []gate.Gate{outer, own, inner} },
		"Chain": func(outer, own, inner gate.Gate) []gate.Gate { return []gate.Gate{gate.Chain(outer, own, inner)} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStock(t, d, 2)
			all, few := perHour(t, "all", 100), perHour(t, "few", 1)
			route := selling(s, nil, say(201, "yours"))
			route.Gates = mount(gate.RateLimit(all, everyone, nil), route.Gates[0], gate.RateLimit(few, everyone, nil))
			address := d.Serve(t, App{Routes: []Route{route}})
			for i, ask := range []struct {
				who    string
				status int
			}{{"ann", 201}, {"ann", 409}, {"bob", 429}, {"bob", 429}} {
				a := flash(t, address, "", ask.who)
				if got, want := used(t, all), int64(i+1); a.status != ask.status || got != want {
					t.Errorf("request %d: got %d, and %d used, want %d and %d", i, a.status, got, ask.status, want)
				}
				stands(t, s, 1, 0, 1)
			}
		})
	}
}
