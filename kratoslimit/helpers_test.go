package kratoslimit_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	klog "github.com/go-kratos/kratos/v2/log"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.NewStdLogger(io.Discard))
	redistest.Main(m)
}

type text = wrapperspb.StringValue

const create, watch = "/shop.Orders/Create", "/shop.Orders/Watch"

// orders is a service with a unary method, which is also served over HTTP, and a stream.
type orders struct {
	create func(ctx context.Context, message *text) (*text, error)
	watch  func(stream grpc.ServerStream) error
}

func (o *orders) defaults() *orders {
	if o.create == nil {
		o.create = func(_ context.Context, message *text) (*text, error) { return message, nil }
	}
	if o.watch == nil {
		o.watch = func(stream grpc.ServerStream) error { return stream.SendMsg(&text{Value: "done"}) }
	}
	return o
}

// service is what protoc-gen-go-grpc would make of it.
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
		Handler:       func(srv any, stream grpc.ServerStream) error { return srv.(*orders).watch(stream) },
	}},
}

// register is what protoc-gen-go-http would make of it.
func register(server *khttp.Server, o *orders) {
	server.Route("/").POST("/v1/orders/{shop}", func(ctx khttp.Context) error {
		var in text
		if err := ctx.Bind(&in); err != nil {
			return err
		}
		khttp.SetOperation(ctx, create)
		h := ctx.Middleware(func(ctx context.Context, message any) (any, error) { return o.create(ctx, message.(*text)) })
		out, err := h(ctx, &in)
		if err != nil {
			return err
		}
		return ctx.Result(http.StatusOK, out)
	})
}

// overHTTP serves over real connections, and returns a function that sends an order.
func overHTTP(t *testing.T, o *orders, options ...khttp.ServerOption) func(message string, header http.Header) (*http.Response, string) {
	t.Helper()
	server := khttp.NewServer(append([]khttp.ServerOption{khttp.Timeout(0)}, options...)...)
	register(server, o.defaults())
	return poster(t, server)
}

// poster serves a handler over real connections.
func poster(t *testing.T, h http.Handler) func(message string, header http.Header) (*http.Response, string) {
	t.Helper()
	listening := httptest.NewServer(h)
	t.Cleanup(listening.Close)
	return func(message string, header http.Header) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, listening.URL+"/v1/orders/9?page=2", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Body, r.Header = io.NopCloser(strings.NewReader(`"`+message+`"`)), header.Clone()
		if r.Header == nil {
			r.Header = http.Header{}
		}
		r.Header.Set("Content-Type", "application/json")
		a, err := listening.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a, string(body)
	}
}

// overGRPC serves over a real connection, and returns one.
func overGRPC(t *testing.T, o *orders, options ...kgrpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	server := kgrpc.NewServer(append([]kgrpc.ServerOption{
		kgrpc.Timeout(0), kgrpc.Endpoint(&url.URL{Scheme: "grpc", Host: "127.0.0.1"}),
	}, options...)...)
	return dial(t, server.Server, o)
}

// dial serves a server of gRPC.
func dial(t *testing.T, server *grpc.Server, o *orders) *grpc.ClientConn {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server.RegisterService(&service, o.defaults())
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
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

// limiter waits for a busy machine.
func limiter(t *testing.T, rdb script.Client, policy limit.Policy) *limit.Limiter {
	t.Helper()
	l, err := limit.New(rdb, "kratos", []limit.Policy{policy}, &limit.Options{Fail: store.FailClosed, Budget: time.Minute})
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

// left returns how many permits of everybody are left.
func left(t *testing.T, l *limit.Limiter) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), "everyone")
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

func everyone(gate.Request) (string, error) { return "everyone", nil }
