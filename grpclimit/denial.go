package grpclimit

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/neap-go/neap/core/gate"
)

// statuses has the code of each kind of denial that gRPC can answer.
var statuses = map[gate.Kind]codes.Code{
	gate.KindRefused:     codes.InvalidArgument, // or as its status says
	gate.KindFault:       codes.Internal,
	gate.KindUnavailable: codes.Unavailable,
	gate.KindLimited:     codes.ResourceExhausted,
	gate.KindFull:        codes.ResourceExhausted,
	gate.KindBlocked:     codes.PermissionDenied,
}

// refusals has the codes of refusals whose status says more than 400.
var refusals = map[int]codes.Code{
	401: codes.Unauthenticated, 403: codes.PermissionDenied, 404: codes.NotFound, 429: codes.ResourceExhausted,
}

// pushback is the field that says when a client of gRPC may send a call again, in
// milliseconds; below 0 it may not (gRFC A6).
const pushback = "grpc-retry-pushback-ms"

// denial is the error of a call that a gate refused.
type denial struct{ status *status.Status }

func (d *denial) Error() string { return d.status.Err().Error() }

// GRPCStatus is for package status.
func (d *denial) GRPCStatus() *status.Status { return d.status }

func asDenial(err error) (d *denial, is bool) { return errors.AsType[*denial](err) }

// deny returns the error of a call that the gate refused, and writes its trailer.
func deny(ctx context.Context, pass *gate.Pass) error {
	d := pass.Denial
	code, ok := statuses[d.Kind]
	if !ok {
		code = codes.Internal
	}
	if own, ok := refusals[d.Status]; ok && d.Kind == gate.KindRefused {
		code = own
	}
	st, wait := status.New(code, d.Title), "-1"
	if after := retryAfter(d); after > 0 {
		wait = strconv.FormatInt(min(int64((after-1)/time.Millisecond)+1, math.MaxInt32), 10) // gRFC A6 has 32 bits
		if with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); err == nil {
			st = with
		}
	}
	setTrailer(ctx, append([]gate.Field{{Name: pushback, Value: wait}}, pass.Reply.Sent().Header...))
	return &denial{st}
}

// retryAfter returns how long to wait, or 0 if waiting does not help. A 429 always says how long,
// as it does over HTTP.
func retryAfter(d *gate.Denial) time.Duration {
	if d.Status == 429 && d.RetryAfter <= 0 {
		return time.Second
	}
	return d.RetryAfter
}

// onlyHTTP are fields that say nothing over gRPC, or stand in the status.
var onlyHTTP = map[string]bool{"content-type": true, "cache-control": true, "retry-after": true}

// setTrailer writes fields into the trailer of a call.
func setTrailer(ctx context.Context, fields []gate.Field) {
	md := metadata.MD{}
	for _, f := range fields {
		switch name := strings.ToLower(f.Name); {
		case onlyHTTP[name]:
		case f.Add:
			md.Append(name, f.Value)
		default:
			md.Set(name, f.Value)
		}
	}
	if len(md) > 0 {
		_ = grpc.SetTrailer(ctx, md) // it fails only outside of a call, where nobody reads it
	}
}
