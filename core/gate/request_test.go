package gate_test

import (
	"context"
	"iter"
	"net/netip"
	"net/textproto"

	"github.com/neap-go/neap/core/gate"
)

// request is a Request of plain data.
type request struct {
	ctx      context.Context
	method   string
	host     string
	path     string
	query    string
	route    string
	params   map[string]string
	header   map[string][]string
	values   map[any]any
	peer     netip.AddrPort
	body     string
	bodyErr  error
	bodyMax  int64
	bodyRead int
}

var _ gate.Request = (*request)(nil)

func (r *request) Context() context.Context {
	if r.ctx == nil {
		return context.Background()
	}
	return r.ctx
}

func (r *request) Method() string           { return r.method }
func (r *request) Host() string             { return r.host }
func (r *request) Path() string             { return r.path }
func (r *request) RawQuery() string         { return r.query }
func (r *request) Route() string            { return r.route }
func (r *request) Param(name string) string { return r.params[name] }
func (r *request) Header(name string) []string {
	return r.header[textproto.CanonicalMIMEHeaderKey(name)]
}

func (r *request) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name, lines := range r.header {
			for _, line := range lines {
				if !yield(name, line) {
					return
				}
			}
		}
	}
}

func (r *request) Value(key any) any {
	if v, ok := r.values[key]; ok {
		return v
	}
	return r.Context().Value(key)
}

func (r *request) RemoteAddr() netip.AddrPort { return r.peer }

func (r *request) Body(limit int64) ([]byte, error) {
	r.bodyMax, r.bodyRead = limit, r.bodyRead+1
	if r.bodyErr == nil && int64(len(r.body)) > limit {
		r.bodyErr = gate.ErrBodyTooLarge
	}
	if r.bodyErr != nil {
		return nil, r.bodyErr
	}
	return []byte(r.body), nil
}

// with is a request with one header field.
func with(name string, lines ...string) *request {
	return &request{header: map[string][]string{textproto.CanonicalMIMEHeaderKey(name): lines}}
}

// fake is a Gate made from a function.
type fake struct{ enter func(gate.Request) gate.Pass }

func (f *fake) Enter(r gate.Request) gate.Pass { return f.enter(r) }

// always is a Gate that answers every request in the same way.
func always(p gate.Pass) gate.Gate {
	return &fake{func(gate.Request) gate.Pass { return p }}
}
