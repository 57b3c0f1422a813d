package grpclimit_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/grpclimit"
	"github.com/neap-go/neap/internal/storetest"
)

// oneEach admits a call an hour of each subject.
func oneEach() *limit.Limiter {
	limiter, err := limit.New(storetest.Embedded(), "grpc", []limit.Policy{
		limit.FixedWindow{Limit: 1, Window: time.Hour},
	}, &limit.Options{Holds: true})
	if err != nil {
		panic(err)
	}
	return limiter
}

func ExampleUnaryServerInterceptor() {
	limited := gate.RateLimit(oneEach(), gate.Everyone, nil)
	interceptor := grpclimit.UnaryServerInterceptor(limited) // for grpc.ChainUnaryInterceptor
	handler := func(context.Context, any) (any, error) { return "created", nil }
	for range 2 {
		answer, err := interceptor(context.Background(), "tea", &grpc.UnaryServerInfo{FullMethod: "/shop.Orders/Create"}, handler)
		fmt.Println(answer, status.Code(err))
	}
	// Output:
	// created OK
	// <nil> ResourceExhausted
}

func ExampleStreamServerInterceptor() {
	limited := gate.RateLimit(oneEach(), gate.Everyone, nil)
	interceptor := grpclimit.StreamServerInterceptor(limited) // for grpc.ChainStreamInterceptor
	handler := func(any, grpc.ServerStream) error { return nil }
	for range 2 {
		err := interceptor(nil, exampleStream{}, &grpc.StreamServerInfo{FullMethod: "/shop.Orders/Watch"}, handler)
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// ResourceExhausted
}

type exampleStream struct{ grpc.ServerStream }

func (exampleStream) Context() context.Context { return context.Background() }

// partnerAt is a connection to a partner, which is never opened.
func partnerAt(target string) *grpc.ClientConn {
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	return conn
}

func ExampleUnaryClientInterceptor() {
	interceptor := grpclimit.UnaryClientInterceptor(oneEach(), nil) // for grpc.WithChainUnaryInterceptor
	call := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	for range 2 {
		err := interceptor(context.Background(), "/shop.Orders/Create", nil, nil, partnerAt("dns:///example.com:443"), call)
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// ResourceExhausted
}

func ExampleStreamClientInterceptor() {
	interceptor := grpclimit.StreamClientInterceptor(oneEach(), nil) // for grpc.WithChainStreamInterceptor
	open := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		return nil, nil
	}
	for range 2 {
		_, err := interceptor(context.Background(), &grpc.StreamDesc{}, partnerAt("dns:///example.com:443"), "/shop.Orders/Watch", open)
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// ResourceExhausted
}

func ExampleKey() {
	item := gate.Tag("item", grpclimit.Key(func(_ context.Context, _ string, message any) (string, error) {
		name, ok := message.(*wrapperspb.StringValue)
		if !ok { // of another method, or of a stream
			return "", gate.ErrMissing
		}
		return name.GetValue(), nil
	}))
	interceptor := grpclimit.UnaryServerInterceptor(gate.RateLimit(oneEach(), item, nil))
	handler := func(context.Context, any) (any, error) { return "created", nil }
	for _, of := range []string{"tea", "tea", "ale"} {
		_, err := interceptor(context.Background(), wrapperspb.String(of), &grpc.UnaryServerInfo{FullMethod: "/shop.Orders/Create"}, handler)
		fmt.Println(of, status.Code(err))
	}
	// Output:
	// tea OK
	// tea ResourceExhausted
	// ale OK
}

func ExampleTold() {
	st, err := status.New(codes.ResourceExhausted, "too many").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)})
	if err != nil {
		panic(err)
	}
	fmt.Println(grpclimit.Told(st))
	// Output: 1m0s
}
