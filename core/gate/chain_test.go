package gate_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

// diary collects what gates do, in order.
type diary struct{ lines []string }

func (d *diary) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// gate writes down its calls of Enter and Leave.
func (d *diary) gate(name string, p gate.Pass) gate.Gate {
	return &fake{func(gate.Request) gate.Pass {
		d.add("enter %s", name)
		if p.Reply == nil {
			p.Leave = func(r *gate.Reply) { d.add("leave %s %s", name, brief(r)) }
		}
		return p
	}}
}

func brief(r *gate.Reply) string {
	if r == nil {
		return "nil"
	}
	return fmt.Sprintf("%d %q partial=%v", r.Status, r.Body, r.Partial)
}

func (d *diary) want(t *testing.T, lines ...string) {
	t.Helper()
	if !slices.Equal(d.lines, lines) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(d.lines, "\n\t"), strings.Join(lines, "\n\t"))
	}
	d.lines = nil
}

func panics(t *testing.T, f func()) (value any) {
	t.Helper()
	defer func() {
		if value = recover(); value == nil {
			t.Error("got no panic, want one")
		}
	}()
	f()
	return nil
}

func TestEmptyChainPasses(t *testing.T) {
	t.Parallel()
	for _, g := range []gate.Gate{gate.Chain(), gate.Chain(always(gate.Pass{})), gate.Chain(gate.Chain(), always(gate.Pass{}))} {
		if p := g.Enter(&request{}); !reflect.DeepEqual(p, gate.Pass{}) {
			t.Errorf("got %+v, want the zero Pass", p)
		}
		if reflect.ValueOf(g).IsNil() {
			t.Error("a chain of no gates: got a nil gate, want one that adapters can mount")
		}
	}
}

func TestChainLeavesInnerFirst(t *testing.T) {
	t.Parallel()
	var d diary
	g := gate.Chain(d.gate("a", gate.Pass{Capture: 2}), gate.Chain(d.gate("b", gate.Pass{Capture: 9}), d.gate("c", gate.Pass{})), d.gate("d", gate.Pass{Capture: 4}))
	p := g.Enter(&request{})
	if p.Capture != 9 || p.Reply != nil {
		t.Errorf("got %+v, want a pass that captures 9 bytes and has no reply", p)
	}
	d.want(t, "enter a", "enter b", "enter c", "enter d")
	p.Leave(&gate.Reply{Status: 200, Body: []byte("1234")})
	d.want(t, `leave d 200 "1234" partial=false`, `leave c 200 "" partial=true`, `leave b 200 "1234" partial=false`, `leave a 200 "12" partial=true`)

	g.Enter(&request{}).Leave(&gate.Reply{Status: 204})
	d.want(t, "enter a", "enter b", "enter c", "enter d",
		`leave d 204 "" partial=false`, `leave c 204 "" partial=false`, `leave b 204 "" partial=false`, `leave a 204 "" partial=false`)

	g.Enter(&request{}).Leave(&gate.Reply{Status: 200, Body: []byte("1"), Partial: true})
	if last := d.lines[len(d.lines)-1]; last != `leave a 200 "1" partial=true` {
		t.Errorf("a streamed reply: the outer gate got %s, want leave a 200 \"1\" partial=true", last)
	}
	d.lines = nil

	g.Enter(&request{}).Leave(nil)
	d.want(t, "enter a", "enter b", "enter c", "enter d", "leave d nil", "leave c nil", "leave b nil", "leave a nil")
}

func TestChainRefusalCallsEarlierLeaves(t *testing.T) {
	t.Parallel()
	var d diary
	refusal := &gate.Reply{Status: 429, Header: []gate.Field{{Name: "Retry-After", Value: "1"}}, Body: []byte("no")}
	g := gate.Chain(
		d.gate("a", gate.Pass{Capture: 1}), d.gate("b", gate.Pass{}),
		d.gate("c", gate.Pass{Reply: refusal}), d.gate("d", gate.Pass{}))
	p := g.Enter(&request{})
	d.want(t, "enter a", "enter b", "enter c", `leave b 429 "" partial=true`, `leave a 429 "n" partial=true`)
	if !reflect.DeepEqual(p, gate.Pass{Reply: refusal}) || p.Reply == refusal {
		t.Errorf("got %+v with the reply %+v, want nothing but a copy of %+v", p, p.Reply, refusal)
	}
}

// A Leave sees of a refusal what adapters send for it.
func TestChainLeaveSeesWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method string
		status int
		want   string
	}{
		{"GET", 429, `leave a 429 "no" partial=false`},
		{"HEAD", 429, `leave a 429 "" partial=false`},
		{"GET", 204, `leave a 204 "" partial=false`},
		{"GET", 304, `leave a 304 "" partial=false`},
		{"GET", 0, `leave a 200 "no" partial=false`},
		{"GET", 42, `leave a 500 "no" partial=false`},
		{"GET", 103, `leave a 500 "no" partial=false`},
		{"GET", 999, `leave a 999 "no" partial=false`},
		{"GET", 1000, `leave a 500 "no" partial=false`},
	} {
		var d diary
		var seen []gate.Field
		watch := always(gate.Pass{Leave: func(r *gate.Reply) { seen = r.Header }})
		own := []gate.Field{{Name: "X-Own", Value: "1"}, {Name: "content-length", Value: "7"}, {Name: "Transfer-Encoding", Value: "chunked"}}
		g := gate.Chain(watch, d.gate("a", gate.Pass{Capture: 9}), always(gate.Pass{
			Reply: &gate.Reply{Status: c.status, Header: own, Body: []byte("no")},
		}))
		g.Enter(&request{method: c.method})
		d.want(t, "enter a", c.want)
		if !slices.Equal(seen, own[:1]) || own[1].Value != "7" {
			t.Errorf("%s %d: Leave sees the fields %+v, and the gate's own are %+v, "+
				"want %+v seen and the gate's own untouched", c.method, c.status, seen, own, own[:1])
		}
	}
}

// A Leave that appends to the body does not write into that of another Leave.
func TestChainLeavesShareNoBody(t *testing.T) {
	t.Parallel()
	var outer string
	g := gate.Chain(
		always(gate.Pass{Capture: 4, Leave: func(r *gate.Reply) { outer = string(r.Body) }}),
		always(gate.Pass{Capture: 2, Leave: func(r *gate.Reply) { _ = append(r.Body, "XX"...) }}))
	g.Enter(&request{}).Leave(&gate.Reply{Status: 200, Body: []byte("1234")})
	if outer != "1234" {
		t.Errorf("the outer gate saw the body %q, want \"1234\"", outer)
	}
}

func TestChainSendsAllHeaders(t *testing.T) {
	t.Parallel()
	field := func(name, value string, add bool) gate.Field { return gate.Field{Name: name, Value: value, Add: add} }
	spare := make([]gate.Field, 1, 8)
	spare[0] = field("RateLimit", "a", true)
	inner := []gate.Field{field("ratelimit", "b", true), field("X-Limit", "2", false)}
	outer := always(gate.Pass{Header: append(spare, field("X-Limit", "1", false))})

	p := gate.Chain(outer, always(gate.Pass{Header: inner})).Enter(&request{})
	want := []gate.Field{field("RateLimit", "a", true), field("X-Limit", "1", false), field("ratelimit", "b", true), field("X-Limit", "2", false)}
	if !slices.Equal(p.Header, want) {
		t.Errorf("passing: got the fields %+v, want %+v", p.Header, want)
	}
	if spare[:8][2] != (gate.Field{}) {
		t.Errorf("the gate's own slice was written to: got %+v, want nothing behind its first field", spare[:8])
	}

	var seen []gate.Field
	watch := always(gate.Pass{Leave: func(r *gate.Reply) { seen = r.Header }})
	own := []gate.Field{field("x-limit", "3", false), field("Set-Cookie", "a", true), field("Set-Cookie", "b", true)}
	p = gate.Chain(watch, outer, always(gate.Pass{Header: inner, Reply: &gate.Reply{Status: 400, Header: own}})).Enter(&request{})
	want = []gate.Field{field("RateLimit", "a", true), field("ratelimit", "b", true), own[0], own[1], own[2]}
	if !slices.Equal(p.Reply.Header, want) || !slices.Equal(seen, want) {
		t.Errorf("refusing: got the fields %+v in the reply and %+v in Leave, want %+v", p.Reply.Header, seen, want)
	}
}

func TestChainPanicInEnterCallsEarlierLeaves(t *testing.T) {
	t.Parallel()
	var d diary
	boom := &fake{func(gate.Request) gate.Pass { panic("boom") }}
	g := gate.Chain(d.gate("a", gate.Pass{}), d.gate("b", gate.Pass{}), boom)
	if v := panics(t, func() { g.Enter(&request{}) }); v != "boom" {
		t.Errorf("got the panic %v, want boom", v)
	}
	d.want(t, "enter a", "enter b", "leave b nil", "leave a nil")
}

func TestChainPanicInLeaveStillCallsTheOthers(t *testing.T) {
	t.Parallel()
	var d diary
	bad := func(name string) gate.Gate {
		return always(gate.Pass{Leave: func(r *gate.Reply) {
			d.add("leave %s %s", name, brief(r))
			panic(name)
		}})
	}
	g := gate.Chain(d.gate("a", gate.Pass{}), bad("b"), d.gate("c", gate.Pass{}), bad("d"))
	left := []string{`leave d 200 "" partial=false`, `leave c 200 "" partial=false`, `leave b 200 "" partial=false`, `leave a 200 "" partial=false`}
	p := g.Enter(&request{})
	d.lines = nil
	panics(t, func() { p.Leave(&gate.Reply{Status: 200}) })
	d.want(t, left...)

	refusing := gate.Chain(g, always(gate.Pass{Reply: &gate.Reply{Status: 200}}))
	panics(t, func() { refusing.Enter(&request{}) })
	d.want(t, append([]string{"enter a", "enter c"}, left...)...)
}

func TestChainNestsContexts(t *testing.T) {
	t.Parallel()
	base := &request{
		ctx:    context.WithValue(context.Background(), userKey(0), "outermost"),
		values: map[any]any{"framework": "kept"},
		method: "PUT",
	}
	nest := func(key any, value string) gate.Gate {
		return &fake{func(r gate.Request) gate.Pass {
			return gate.Pass{Context: context.WithValue(r.Context(), key, value)}
		}}
	}
	var innermost gate.Request
	look := &fake{func(r gate.Request) gate.Pass {
		innermost = r
		return gate.Pass{}
	}}
	p := gate.Chain(nest(userKey(1), "a"), gate.Chain(nest(userKey(2), "b"), nest(userKey(1), "c")), look).Enter(base)
	for key, want := range map[any]any{
		userKey(0): "outermost", userKey(1): "c", userKey(2): "b", "framework": "kept", "none": nil,
	} {
		if got := innermost.Value(key); got != want {
			t.Errorf("the last gate's Value(%v) is %v, want %v", key, got, want)
		}
		if key != "framework" && p.Context.Value(key) != want {
			t.Errorf("the handler's Value(%v) is %v, want %v", key, p.Context.Value(key), want)
		}
	}
	if innermost.Context() != p.Context || innermost.Method() != "PUT" {
		t.Errorf("the last gate sees a request of method %q, want PUT and the context of the handler",
			innermost.Method())
	}
	if gate.Unwrap(innermost) != base || gate.Unwrap(base) != base {
		t.Error("Unwrap returned another request, want the adapter's")
	}
	if p := gate.Chain(look).Enter(base); p.Context != nil {
		t.Error("gates without a context: got one made for the handler, want nil")
	}
}

func TestChainCopiesItsGates(t *testing.T) {
	t.Parallel()
	gates := []gate.Gate{always(gate.Pass{})}
	g := gate.Chain(gates...)
	gates[0] = nil
	if p := g.Enter(&request{}); p.Reply != nil {
		t.Errorf("got the reply %+v, want none: a chain has its own copy of its gates", p.Reply)
	}
}
