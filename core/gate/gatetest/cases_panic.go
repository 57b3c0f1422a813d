package gatetest

import (
	"testing"

	"github.com/neap-go/neap/core/gate"
)

func handlerPanics(t *testing.T, d Driver) {
	for name, begin := range map[string]Handler{
		"BeforeTheResponse": func(Exchange) error { return nil },
		"AfterTheBody":      say(200, "begun"),
	} {
		t.Run(name, func(t *testing.T) {
			l := watch(t)
			l.expect(2)
			leaving := pass(gate.Pass{Capture: 100, Leave: l.leave})
			address := d.Serve(t, App{
				Gates: []gate.Gate{leaving},
				Routes: []Route{
					{Method: "GET", Pattern: "/detail", Gates: []gate.Gate{leaving}, Handler: func(x Exchange) error {
						_ = begin(x)
						panic("gatetest: a handler panics")
					}},
				},
			})
			a, err := dial(t, address).try("GET", "/detail", "")
			if name == "BeforeTheResponse" && (err != nil || a.status != 500 || a.body != Recovered) {
				t.Errorf("got %d %q, %v, want 500 %q", a.status, a.body, err, Recovered)
			}
			for _, r := range l.await(2) {
				if r != nil {
					t.Errorf("after a panic, Leave was called with %+v, want nil", *r)
				}
			}
			survives(t, l, address)
		})
	}
}

// survives checks that the server still answers.
func survives(t *testing.T, l *leaves, address string) {
	t.Helper()
	before := len(l.all())
	if a := get(t, address, "/nowhere"); a.status != 404 {
		t.Errorf("after a panic the server answers %d, want 404", a.status)
	}
	l.expect(len(l.await(before + 1)))
}

func enterPanics(t *testing.T, d Driver) {
	l := watch(t)
	l.expect(1)
	address := d.Serve(t, App{
		Gates: []gate.Gate{pass(gate.Pass{Leave: l.leave})},
		Routes: []Route{{
			Method: "GET", Pattern: "/detail", Handler: never(t),
			Gates: []gate.Gate{enter(func(gate.Request) gate.Pass { panic("gatetest: a gate panics") })},
		}},
	})
	if a := get(t, address, "/detail"); a.status != 500 || a.body != Recovered {
		t.Errorf("got %d %q, want 500 %q", a.status, a.body, Recovered)
	}
	if r := l.await(1)[0]; r != nil {
		t.Errorf("after a panic, Leave was called with %+v, want nil", *r)
	}
	survives(t, l, address)
}

func leavePanics(t *testing.T, d Driver) {
	l := watch(t)
	l.expect(1)
	address := d.Serve(t, App{Routes: []Route{{
		Method: "GET", Pattern: "/detail", Handler: say(200, "ok"),
		Gates: []gate.Gate{pass(gate.Pass{Leave: func(r *gate.Reply) {
			l.leave(r)
			panic("gatetest: Leave panics")
		}})},
	}}})
	_, _ = dial(t, address).try("GET", "/detail", "")
	if r := l.await(1)[0]; r == nil {
		t.Error("Leave was called with nil, want what the handler wrote")
	}
	if a := get(t, address, "/nowhere"); a.status != 404 {
		t.Errorf("after a panic the server answers %d, want 404", a.status)
	}
}
