package grpclimit

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/neap-go/neap/core/gate"
)

// UnaryServerInterceptor returns an interceptor that lets a call of a unary method run if the
// gate does. It panics on a gate that the documentation of this package does not name.
func UnaryServerInterceptor(g gate.Gate) grpc.UnaryServerInterceptor {
	mustGate("UnaryServerInterceptor", g)
	return func(ctx context.Context, message any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
		err = serve(ctx, g, info.FullMethod, message, func(ctx context.Context) (err error) {
			answer, err = handler(ctx, message)
			return err
		})
		return answer, err
	}
}

// StreamServerInterceptor returns an interceptor that lets a stream run if the gate does. It
// panics on a gate that the documentation of this package does not name. A [Key] gets no
// message.
func StreamServerInterceptor(g gate.Gate) grpc.StreamServerInterceptor {
	mustGate("StreamServerInterceptor", g)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return serve(stream.Context(), g, info.FullMethod, nil, func(ctx context.Context) error {
			return handler(srv, withContext{stream, ctx})
		})
	}
}

// withContext is a stream with the context that a gate made.
type withContext struct {
	grpc.ServerStream

	ctx context.Context
}

func (s withContext) Context() context.Context { return s.ctx }

// mustGate panics on a gate whose denials have no status of gRPC.
func mustGate(interceptor string, g gate.Gate) {
	kinds, known := gate.Kinds(g)
	if !known {
		panic(fmt.Sprintf("grpclimit.%s: the gate is a %T: use gates that gate.RateLimit, RateLimits, Concurrency, Block or Chain made", interceptor, g))
	}
	for _, k := range kinds {
		if _, ok := statuses[k]; !ok {
			panic("grpclimit." + interceptor + ": the gate answers with what HTTP alone can say: call the guard, the lock or the stock in the handler, by its own API")
		}
	}
}

// serve asks the gate, and runs the handler if the gate lets the call run.
func serve(ctx context.Context, g gate.Gate, method string, message any, handler func(context.Context) error) error {
	pass := g.Enter(&request{ctx: ctx, method: method, message: message})
	if pass.Reply != nil {
		return deny(ctx, &pass)
	}
	setTrailer(ctx, pass.Header)
	if pass.Context != nil {
		ctx = pass.Context
	}
	if pass.Leave == nil {
		return handler(ctx)
	}
	var left *gate.Reply // nil after a panic
	defer func() { pass.Leave(left) }()
	err := handler(ctx)
	left = replyOf(err)
	return err
}

// replyOf returns the answer of a handler as a gate sees it: with the status of HTTP that
// stands for the code, and without its body.
func replyOf(err error) *gate.Reply {
	st, is := status.FromError(err)
	if !is {
		st = status.FromContextError(err)
	}
	_, refused := asDenial(err)
	return &gate.Reply{Status: httpStatus(st.Code()), Partial: true, Refused: refused}
}

// httpStatus returns the status that google.rpc.Code gives for a code.
func httpStatus(code codes.Code) int {
	switch code {
	case codes.OK:
		return 200
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return 400
	case codes.Unauthenticated:
		return 401
	case codes.PermissionDenied:
		return 403
	case codes.NotFound:
		return 404
	case codes.AlreadyExists, codes.Aborted:
		return 409
	case codes.ResourceExhausted:
		return 429
	case codes.Canceled:
		return 499
	case codes.Unimplemented:
		return 501
	case codes.Unavailable:
		return 503
	case codes.DeadlineExceeded:
		return 504
	}
	return 500
}
