package grpclimit

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/neap-go/neap/core/gate"
)

// request is a call as gates see it.
type request struct {
	ctx     context.Context
	method  string
	message any // nil for a stream
}

var errNoBody = fmt.Errorf("%w: a call of gRPC has no body: use grpclimit.Key for what stands in its message", gate.ErrWiring)

func (r *request) Context() context.Context { return r.ctx }
func (r *request) Method() string           { return http.MethodPost } // as gRPC sends it
func (r *request) Path() string             { return r.method }
func (r *request) RawQuery() string         { return "" }
func (r *request) Route() string            { return r.method }
func (r *request) Param(string) string      { return "" }
func (r *request) Value(key any) any        { return r.ctx.Value(key) }

func (r *request) Body(int64) ([]byte, error) { return nil, errNoBody }

func (r *request) Host() string {
	if names := r.Header(":authority"); len(names) > 0 {
		return names[0]
	}
	return ""
}

func (r *request) Header(name string) []string {
	return metadata.ValueFromIncomingContext(r.ctx, name)
}

func (r *request) Headers() iter.Seq2[string, string] {
	md, _ := metadata.FromIncomingContext(r.ctx)
	return func(yield func(name, value string) bool) {
		for name, values := range md {
			if strings.HasPrefix(name, ":") {
				continue
			}
			for _, value := range values {
				if !yield(http.CanonicalHeaderKey(name), value) {
					return
				}
			}
		}
	}
}

func (r *request) RemoteAddr() netip.AddrPort {
	from, ok := peer.FromContext(r.ctx)
	if !ok || from.Addr == nil {
		return netip.AddrPort{}
	}
	addr, _ := netip.ParseAddrPort(from.Addr.String()) // zero for a unix socket
	return addr
}

// Key makes a [gate.Key] from a function of the call's context, its full method and its
// message. The message is nil for a stream. The function returns what a Key returns. Use
// [gate.Tag] to make its result safe together with other keys. Key panics if f is nil.
func Key(f func(ctx context.Context, method string, message any) (string, error)) gate.Key {
	if f == nil {
		panic("grpclimit.Key: f is nil")
	}
	return func(q gate.Request) (string, error) {
		r, ok := gate.Unwrap(q).(*request)
		if !ok {
			return "", errNotOurs
		}
		return f(q.Context(), r.method, r.message)
	}
}

var errNotOurs = fmt.Errorf("%w: grpclimit.Key: the request does not come from an interceptor of grpclimit", gate.ErrWiring)
