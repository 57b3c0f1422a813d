package rpc

import (
	"time"

	"google.golang.org/grpc"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/grpclimit"
)

// NewClient returns a connection on which all your processes together make up to 95 calls in
// a second.
func NewClient(rdb script.Client, target string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	limiter, err := limit.New(rdb, "partner", []limit.Policy{
		limit.TokenBucket{Rate: 85, Per: time.Second, Burst: 10}, // evenly: never more than 95 in a second
	}, &limit.Options{Fail: store.FailClosed, Holds: true}) // without Redis no call is made
	if err != nil {
		return nil, err
	}
	opts := &grpclimit.ClientOptions{Wait: 2 * time.Second}
	return grpc.NewClient(target, append(options,
		grpc.WithChainUnaryInterceptor(grpclimit.UnaryClientInterceptor(limiter, opts)),
		grpc.WithChainStreamInterceptor(grpclimit.StreamClientInterceptor(limiter, opts)))...)
}
