package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// payments is the service as protoc would describe it.
var payments = grpc.ServiceDesc{
	ServiceName: "shop.Payments",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Pay",
		Handler: func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			order := new(wrapperspb.StringValue)
			if err := decode(order); err != nil {
				return nil, err
			}
			return interceptor(ctx, order, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/shop.Payments/Pay"}, func(ctx context.Context, order any) (any, error) {
				return srv.(*Payments).Pay(ctx, order.(*wrapperspb.StringValue))
			})
		},
	}},
}

// TestAPaymentOverGRPC is made once, whatever is repeated. Calls over the limit are denied, and
// health checks are not.
func TestAPaymentOverGRPC(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	server, err := NewServer(rdb)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := idempotency.New(rdb, "payments", idempotency.Retry{}, &idempotency.Options{Budget: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var charged atomic.Int64
	server.RegisterService(&payments, &Payments{guard, func(_ context.Context, order string) (string, error) {
		return fmt.Sprint("receipt ", charged.Add(1), " of ", order), nil
	}})
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	st, err := store.Open(rdb, &store.Options{Budget: 10 * time.Second}) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	conn, err := NewClient(st, listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	pay := func(account, order string) (string, error) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-account", account)
		receipt := new(wrapperspb.StringValue)
		err := conn.Invoke(ctx, "/shop.Payments/Pay", wrapperspb.String(order), receipt)
		return receipt.GetValue(), err
	}
	for range 3 {
		if got, err := pay("ann", "17"); err != nil || got != "receipt 1 of 17" {
			t.Errorf("got %q, %v, want the first receipt", got, err)
		}
	}
	if got, err := pay("bob", "17"); err != nil || got != "receipt 2 of 17" {
		t.Errorf("another account: got %q, %v, want a receipt of its own", got, err)
	}
	var denied atomic.Int64
	var all sync.WaitGroup
	for range 60 { // at once, or a slow machine is within the limit
		all.Go(func() {
			if _, err := pay("cid", "1"); status.Code(err) == codes.ResourceExhausted {
				denied.Add(1)
			} else if err != nil {
				t.Errorf("got %v, want no other error", err)
			}
		})
	}
	all.Wait()
	if denied.Load() == 0 {
		t.Error("sixty calls of one account at once: got none denied, want some")
	}
	if got, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil || got.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the health check, without an account: got %v, %v, want it serving", got, err)
	}
}

// TestNoCallIsMadeWithoutRedis, since each process by itself would make up to the limit.
func TestNoCallIsMadeWithoutRedis(t *testing.T) {
	t.Parallel()
	mini, rdb := redistest.Miniredis(t)
	mini.Close()
	var calls atomic.Int64
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		calls.Add(1)
		return nil
	}))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := NewClient(rdb, listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Invoke(t.Context(), "/shop.Payments/Pay", wrapperspb.String("17"), new(wrapperspb.StringValue))
	if n := calls.Load(); err == nil || n != 0 {
		t.Errorf("got %v and %d calls, want an error and none", err, n)
	}
}

// TestAClientOfConnectReadsADenial as an error with its code.
func TestAClientOfConnectReadsADenial(t *testing.T) {
	t.Parallel()
	l, err := limit.NewLocal("connect", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const procedure = "/shop.Orders/Create"
	mux := http.NewServeMux()
	mux.Handle(procedure, LimitConnect(l, gate.ByHeader("X-Account"), connect.NewUnaryHandler(procedure,
		func(_ context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
			return connect.NewResponse(r.Msg), nil
		})))
	server := httptest.NewServer(mux)
	defer server.Close()
	client := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](server.Client(), server.URL+procedure)
	create := func(account string) error {
		r := connect.NewRequest(wrapperspb.String("tea"))
		if account != "" {
			r.Header().Set("X-Account", account)
		}
		_, err := client.CallUnary(t.Context(), r)
		return err
	}
	if err := create("ann"); err != nil {
		t.Errorf("the first: got %v, want no error", err)
	}
	for account, want := range map[string]connect.Code{"ann": connect.CodeResourceExhausted, "": connect.CodeInvalidArgument} {
		err := create(account)
		var of *connect.Error
		if !errors.As(err, &of) || of.Code() != want || (of.Meta().Get("Retry-After") == "") == (account == "ann") {
			t.Errorf("%q: got %v, want %v, and Retry-After where waiting helps", account, err, want)
		}
	}
}
