package rpc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/grpclimit"
)

// NewServer returns a server with a limit for each account before each of its methods, but
// the health check.
func NewServer(rdb script.Client, options ...grpc.ServerOption) (*grpc.Server, error) {
	limiter, err := limit.New(rdb, "grpc", []limit.Policy{
		limit.TokenBucket{Rate: 10, Per: time.Second, Burst: 20},
	}, nil)
	if err != nil {
		return nil, err
	}
	limited := gate.RateLimit(limiter, gate.ByHeader("X-Account"), &gate.RateLimitOptions{
		Skip: func(r gate.Request) bool { return strings.HasPrefix(r.Route(), "/grpc.health.v1.Health/") },
	})
	return grpc.NewServer(append(options,
		grpc.ChainUnaryInterceptor(grpclimit.UnaryServerInterceptor(limited)),
		grpc.ChainStreamInterceptor(grpclimit.StreamServerInterceptor(limited)))...), nil
}

// Payments books each payment once.
type Payments struct {
	guard  *idempotency.Guard
	charge func(ctx context.Context, order string) (receipt string, err error)
}

// Pay is a method of a gRPC service. A repeated call gets the first one's receipt.
func (p *Payments) Pay(ctx context.Context, order *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	account := metadata.ValueFromIncomingContext(ctx, "x-account")[0] // the limit has seen that there is one
	receipt, err := p.guard.Do(ctx, fmt.Sprintf("%q/%q", account, order.GetValue()), func(ctx context.Context) ([]byte, error) {
		receipt, err := p.charge(ctx, order.GetValue())
		return []byte(receipt), err
	})
	if err != nil { // a repeated call finds out whether it was made
		return nil, status.Error(codes.Unavailable, "it is not known whether the payment was made: try again")
	}
	return wrapperspb.String(string(receipt)), nil
}
