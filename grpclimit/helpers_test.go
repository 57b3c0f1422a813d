package grpclimit_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

type text = wrapperspb.StringValue

const create, watch = "/shop.Orders/Create", "/shop.Orders/Watch"

// orders is a service with a unary method and a stream.
type orders struct {
	create func(ctx context.Context, message *text) (*text, error)
	watch  func(stream grpc.ServerStream) error
}

// service is what protoc would make of it.
var service = grpc.ServiceDesc{
	ServiceName: "shop.Orders",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Create",
		Handler: func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			message := new(text)
			if err := decode(message); err != nil {
				return nil, err
			}
			handler := func(ctx context.Context, message any) (any, error) {
				return srv.(*orders).create(ctx, message.(*text))
			}
			if interceptor == nil {
				return handler(ctx, message)
			}
			return interceptor(ctx, message, &grpc.UnaryServerInfo{Server: srv, FullMethod: create}, handler)
		},
	}},
	Streams: []grpc.StreamDesc{{
		StreamName:    "Watch",
		ServerStreams: true,
		ClientStreams: true,
		Handler:       func(srv any, stream grpc.ServerStream) error { return srv.(*orders).watch(stream) },
	}},
}

// serve serves over a real connection, and returns one.
func serve(t *testing.T, o *orders, options []grpc.ServerOption, dial ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	if o.create == nil {
		o.create = func(_ context.Context, message *text) (*text, error) { return message, nil }
	}
	if o.watch == nil {
		o.watch = func(stream grpc.ServerStream) error { return stream.SendMsg(&text{Value: "done"}) }
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&service, o)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// call calls the unary method.
func call(ctx context.Context, conn *grpc.ClientConn, message string, options ...grpc.CallOption) error {
	return conn.Invoke(ctx, create, &text{Value: message}, new(text), options...)
}

// open opens the stream.
func open(ctx context.Context, t *testing.T, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	stream, err := conn.NewStream(ctx, &service.Streams[0], watch)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// limiter waits for a busy machine.
func limiter(t *testing.T, rdb script.Client, policy limit.Policy) *limit.Limiter {
	t.Helper()
	l, err := limit.New(rdb, "grpc", []limit.Policy{policy}, &limit.Options{Holds: true, Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// hourly is a limit of n an hour.
func hourly(t *testing.T, n int64) *limit.Limiter {
	t.Helper()
	_, rdb := redistest.Miniredis(t)
	return limiter(t, rdb, limit.FixedWindow{Name: "hourly", Limit: n, Window: time.Hour})
}

// slot is a limit of one call in flight.
func slot(t *testing.T) *inflight.Limiter {
	t.Helper()
	_, rdb := redistest.Miniredis(t)
	l, err := inflight.New(rdb, "grpc", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
