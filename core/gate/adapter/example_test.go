package adapter_test

import (
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
)

// request is what an adapter makes a gate.Request of. It lacks most methods.
type request struct {
	gate.Request
	c *native
}

func (q request) Context() context.Context {
	return context.WithValue(context.Background(), "user", q.c.user)
}

// native is the framework's own request.
type native struct{ user string }

func nativeOf(q gate.Request) (*native, bool) {
	if q, ok := gate.Unwrap(q).(request); ok {
		return q.c, true
	}
	return nil, false
}

// A Middleware begins with it.
func ExampleRequireGate() {
	defer func() { fmt.Println(recover()) }()
	adapter.RequireGate("ownlimit.Middleware", nil)
	// Output: ownlimit.Middleware: the gate is nil; make one with gate.RateLimit and its like
}

// A Handler begins with it.
func ExampleRequireEndpoint() {
	defer func() { fmt.Println(recover()) }()
	adapter.RequireEndpoint("ownlimit.Handler", nil)
	// Output: ownlimit.Handler: the endpoint is nil; make one with callback.New
}

// nativeOf is the function Context of an adapter.
func ExampleKey() {
	byUser := adapter.Key("ownlimit", nativeOf, func(c *native) (string, error) { return c.user, nil })
	fmt.Println(byUser(request{c: &native{user: "alice"}}))
	_, err := byUser(struct{ gate.Request }{})
	fmt.Println(err)
	// Output:
	// alice <nil>
	// gate: wrong wiring: ownlimit.Key on a request that another adapter made
}

// A gate is told of a panic by nil, and the panic goes on.
func ExampleLeave() {
	leave := func(r *gate.Reply) { fmt.Println("left with a reply:", r != nil) }
	adapter.Leave(leave, func() *gate.Reply { return &gate.Reply{Status: 200} })

	defer func() { fmt.Println(recover()) }()
	adapter.Leave(leave, func() *gate.Reply { panic("the handler panics") })
	// Output:
	// left with a reply: true
	// left with a reply: false
	// the handler panics
}

// A context that outlives its request has no values, and touches the framework no more.
func ExampleBorrow() {
	q, end := adapter.Borrow(request{c: &native{user: "alice"}})
	fmt.Println(q.Context().Value("user"))
	end()
	fmt.Println(q.Context().Value("user"))
	// Output:
	// alice
	// <nil>
}

func ExamplePeer() {
	for _, text := range []string{"192.0.2.1:4711", "2001:db8::1", "@"} {
		fmt.Println(adapter.Peer(text).IsValid(), adapter.Peer(text))
	}
	// Output:
	// true 192.0.2.1:4711
	// true [2001:db8::1]:0
	// false invalid AddrPort
}

func ExampleSplitTarget() {
	path, query := adapter.SplitTarget("http://example.com/a%2Fb?c=%20")
	fmt.Println(path, query)
	// Output: /a%2Fb c=%20
}

func ExampleFields() {
	for _, f := range adapter.Fields(http.Header{"X-List": {"1", "2"}, "Content-Type": {"text/plain"}}) {
		fmt.Println(f.Name, f.Value, f.Add)
	}
	// Output:
	// Content-Type text/plain false
	// X-List 1 false
	// X-List 2 true
}

// A gate reads a body of at most 4 bytes, and then the handler reads all of it.
func ExampleNewBody() {
	body := adapter.NewBody(io.NopCloser(strings.NewReader("0123456789")), -1, false)
	_, err := body.Bytes(4)
	all, _ := io.ReadAll(body)
	fmt.Println(err)
	fmt.Println(string(all))
	// Output:
	// gate: the body is larger than the limit
	// 0123456789
}

// A form that the server has parsed is written with its fields in order.
func ExampleForm() {
	form := &multipart.Form{Value: map[string][]string{"b": {"2"}, "a": {"1"}}}
	body, err := adapter.Form(form, "edge", "multipart/form-data; boundary=edge", 1<<20)
	fmt.Println(strings.ReplaceAll(string(body), "\r", ""), err)
	// Output:
	// --edge
	// Content-Disposition: form-data; name=a
	//
	// 1
	// --edge
	// Content-Disposition: form-data; name=b
	//
	// 2
	// --edge--
	//  <nil>
}

// The gate of a request is left when the server has read the stream of its response.
func ExampleEnd() {
	end := new(adapter.End)
	end.Leave(func(*gate.Reply) { fmt.Println("left") }, &gate.Reply{Status: 200, Partial: true})
	stream := end.Stream(strings.NewReader("the body"))

	fmt.Println("the handler has returned")
	body, _ := io.ReadAll(stream)
	fmt.Println(string(body), end.Reached())
	// Output:
	// the handler has returned
	// left
	// the body true
}

func ExampleOddBoundary() {
	const contentType = "multipart/form-data; boundary=evil; boundary*0=real"
	fmt.Println(adapter.OddBoundary(contentType, "evil")) // which some servers read
	fmt.Println(adapter.OddBoundary(contentType, "real"))
	// Output:
	// true
	// false
}
