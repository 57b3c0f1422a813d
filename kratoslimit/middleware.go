package kratoslimit

import (
	"context"
	"fmt"
	"strings"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"google.golang.org/grpc"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/grpclimit"
	"github.com/neap-go/neap/internal/gatehttp"
)

// Middleware returns middleware for the servers of Kratos, over HTTP and over gRPC, that lets a
// method run if the gate does. It costs what the gate costs. It panics on a gate that the
// documentation of this package does not name.
func Middleware(g gate.Gate) middleware.Middleware {
	call := interceptor(g)
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, message any) (any, error) {
			tr, ok := transport.FromServerContext(ctx)
			if over, is := tr.(khttp.Transporter); is {
				return serve(ctx, g, over, message, next)
			}
			if ok && tr.Kind() == transport.KindGRPC {
				return call(ctx, message, &grpc.UnaryServerInfo{FullMethod: tr.Operation()}, grpc.UnaryHandler(next))
			}
			return nil, kerrors.InternalServer("", "Internal Server Error").WithCause(errNoServer)
		}
	}
}

var errNoServer = fmt.Errorf("%w: kratoslimit.Middleware runs outside of a server of Kratos: mount it with the option Middleware of khttp.NewServer and kgrpc.NewServer", gate.ErrWiring)

// interceptor decides about calls of gRPC, as in a server without Kratos.
func interceptor(g gate.Gate) grpc.UnaryServerInterceptor {
	const theirs = "grpclimit.UnaryServerInterceptor"
	defer func() {
		if p := recover(); p != nil { // the gate is not one that gRPC can answer for
			panic(strings.Replace(fmt.Sprint(p), theirs, "kratoslimit.Middleware", 1))
		}
	}()
	return grpclimit.UnaryServerInterceptor(g)
}

// serve asks the gate about a request over HTTP, and runs the handler if the gate lets it run.
func serve(ctx context.Context, g gate.Gate, tr khttp.Transporter, message any, next middleware.Handler) (answer any, err error) {
	pass := g.Enter(&request{
		Request: gatehttp.Request{HTTP: tr.Request()}, ctx: ctx, operation: tr.Operation(), message: message,
	})
	if pass.Reply != nil {
		return nil, deny(tr.ReplyHeader(), &pass)
	}
	if h := headerOf(tr.ReplyHeader()); h != nil {
		gatehttp.Apply(h, nil) // middleware outside has dropped a refusal, in order to try again
	}
	setHeader(tr.ReplyHeader(), pass.Header)
	if pass.Context != nil {
		ctx = pass.Context
	}
	if pass.Leave == nil {
		return next(ctx, message)
	}
	adapter.Leave(pass.Leave, func() *gate.Reply {
		answer, err = next(ctx, message)
		return replyOf(err)
	})
	return answer, err
}
