package grpclimit

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/outgoing"
)

// ClientOptions are the options of [UnaryClientInterceptor] and [StreamClientInterceptor].
// Their functions must be safe for concurrent use; their panics propagate to the caller,
// except as [StreamClientInterceptor] says.
type ClientOptions struct {
	// Key returns the subject that a call counts for. Nil is the target of the connection,
	// so spell that alike everywhere. An answer to one account then puts the whole target
	// on hold. If the partner counts by account, return the account here.
	Key func(ctx context.Context, method string) (string, error)
	// Wait is how long a call may wait for its permits, as limit.Limiter.WaitFor says. With
	// 0 it does not wait. The call's context also ends the wait.
	Wait time.Duration
	// Cost returns how many permits a call takes; the message is nil for a stream. With nil
	// each call takes 1.
	Cost func(ctx context.Context, method string, message any) int64
	// Settle returns what a call cost in the end, when it has ended. What it took at first
	// was an estimate. The answer is that of a unary call, and nil for a stream. A number
	// below 0 keeps the estimate. Settle costs another round trip to Redis.
	Settle func(ctx context.Context, method string, answer any, err error) int64
	// Concurrency also bounds how many calls of a subject are in flight at once. If there
	// is no room, a call is denied without a wait, and its permits are given back. Nil
	// bounds nothing.
	Concurrency *inflight.Limiter
	// Told returns for how long the partner wants no calls of the subject, as the status of
	// a call says; 0 means that it does not say. Nil is [Told].
	Told func(*status.Status) time.Duration
	// MaxHold is the longest time for which an answer can put the subject on hold: a second to
	// 30 days. 0 means an hour.
	MaxHold time.Duration
	// OnError is told of errors, which are for operators: they may name keys. With nil they
	// are dropped. OnError is told of each decision that was made without Redis, of each
	// hold that Redis did not confirm, and of a settlement that was given up.
	OnError func(ctx context.Context, method string, err error)
}

// Told returns for how long a partner wants no calls, as a status says: the RetryInfo of a
// ResourceExhausted. Without RetryInfo it is final, as for a message that is too large. An
// Unavailable does not count, because it may speak for one server of the partner.
func Told(st *status.Status) time.Duration {
	if st.Code() != codes.ResourceExhausted {
		return 0
	}
	for _, detail := range st.Details() {
		if info, is := detail.(*errdetails.RetryInfo); is && info.GetRetryDelay().IsValid() {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// UnaryClientInterceptor returns an interceptor that makes calls within a limit that holds for
// all your processes together, as nethttp.NewTransport does for HTTP. The limiter needs
// limit.Options.Holds.
//
// A call that the limit denies is not made. errors.As finds a *limit.LimitedError in its error,
// whose status is ResourceExhausted. Other errors before a call is made have a status, too.
// The text of such an error names no key and no cause, because grpc-go sends it to the client
// of a handler that returns it; errors.Unwrap returns the cause, for a log.
//
// If a call ends with ResourceExhausted and a RetryInfo, no process makes a call of the subject
// until then.
//
// Mount it inside of interceptors that try again: each attempt is then a call. The attempts
// of grpc-go itself, by its service config, are not counted: the partner gets up to
// maxAttempts calls for one permit.
//
// A call costs the round trips to Redis of limit.Limiter.TakeN and of Concurrency, and one
// more if its answer puts the subject on hold.
//
// UnaryClientInterceptor panics on a nil limiter, on one without Holds, on Settle with a
// limiter that cannot settle, and on options out of range. Nil options are the defaults;
// options are copied.
func UnaryClientInterceptor(limiter *limit.Limiter, opts *ClientOptions) grpc.UnaryClientInterceptor {
	c := newClient("UnaryClientInterceptor", limiter, opts)
	return func(ctx context.Context, method string, message, answer any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		call, err := c.begin(ctx, method, message, cc)
		if err != nil {
			return err
		}
		err = errPanic
		defer func() { c.end(ctx, method, call, answer, err) }()
		err = invoke(ctx, method, message, answer, cc, options...)
		c.answered(ctx, call, err)
		return err
	}
}

// StreamClientInterceptor is [UnaryClientInterceptor] for streams. Read a stream to its end,
// or cancel its context; otherwise it stays in flight. Panics of Told and Settle, and of
// OnError once the stream has begun, do not propagate; they are logged.
func StreamClientInterceptor(limiter *limit.Limiter, opts *ClientOptions) grpc.StreamClientInterceptor {
	c := newClient("StreamClientInterceptor", limiter, opts)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		call, err := c.begin(ctx, method, nil, cc)
		if err != nil {
			return nil, err
		}
		var ended atomic.Bool
		finish := func(err error) { // grpc may call it on a goroutine of its own
			if ended.Swap(true) {
				return
			}
			outgoing.Contained(func() {
				defer func() { c.end(ctx, method, call, nil, err) }()
				c.answered(ctx, call, err)
			})
		}
		opened := false
		defer func() {
			if !opened { // it has panicked
				finish(errPanic)
			}
		}()
		stream, err := open(ctx, desc, cc, method, append(slices.Clip(options), grpc.OnFinish(finish))...)
		if opened = true; err != nil {
			finish(err)
		}
		return stream, err
	}
}

var errPanic = errors.New("grpclimit: the call panicked")

type client struct {
	calls *outgoing.Calls
	opts  ClientOptions
}

func newClient(interceptor string, limiter *limit.Limiter, opts *ClientOptions) *client {
	c := &client{}
	if opts != nil {
		c.opts = *opts
	}
	if c.opts.Told == nil {
		c.opts.Told = Told
	}
	calls, err := outgoing.New(limiter, &outgoing.Options{
		Wait: c.opts.Wait, Concurrency: c.opts.Concurrency, Settles: c.opts.Settle != nil, MaxHold: c.opts.MaxHold,
	})
	if err != nil {
		panic("grpclimit." + interceptor + ": " + err.Error())
	}
	c.calls = calls
	return c
}

// refused is the error of a call that was not made, with a status. Its text is that of the
// status: grpc-go sends the whole text of an error that wraps it.
type refused struct {
	cause  error
	status *status.Status
}

// GRPCStatus is for package status.
func (r *refused) GRPCStatus() *status.Status { return r.status }

func (r *refused) Error() string { return r.status.Err().Error() }

// Unwrap returns the error.
func (r *refused) Unwrap() error { return r.cause }

// notMade returns the error of a call that was not made.
func notMade(err error) error {
	var st *status.Status
	var denied *limit.LimitedError
	var own interface{ GRPCStatus() *status.Status }
	switch {
	case errors.As(err, &denied):
		st = status.New(codes.ResourceExhausted, "the limit for calls to this service is reached")
		if with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(denied.RetryAfter)}); err == nil {
			st = with
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		st = status.New(status.FromContextError(err).Code(), "the context of the call has ended")
	case errors.Is(err, limit.ErrCost), errors.Is(err, limit.ErrSubject):
		st = status.New(codes.InvalidArgument, "the limit for calls to this service cannot grant the call")
	case errors.As(err, &own) && own.GRPCStatus().Code() != codes.OK:
		st = own.GRPCStatus()
	default:
		st = status.New(codes.Unavailable, "the limit for calls to this service could not be asked")
	}
	return &refused{err, st}
}

func (c *client) begin(ctx context.Context, method string, message any, cc *grpc.ClientConn) (*outgoing.Call, error) {
	var subject string
	var err error
	if c.opts.Key == nil {
		subject = cc.CanonicalTarget()
	} else if subject, err = c.opts.Key(ctx, method); err != nil {
		return nil, notMade(err)
	}
	cost := int64(1)
	if c.opts.Cost != nil {
		cost = c.opts.Cost(ctx, method, message)
	}
	call, err := c.calls.Begin(ctx, subject, cost, func(err error) {
		if c.opts.OnError != nil {
			c.opts.OnError(ctx, method, err)
		}
	})
	if err != nil {
		return nil, notMade(err)
	}
	return call, nil
}

// answered heeds what the partner says. What another interceptor has denied says nothing of it.
func (c *client) answered(ctx context.Context, call *outgoing.Call, err error) {
	if errors.Is(err, limit.ErrLimited) {
		return
	}
	call.Answered(ctx, c.opts.Told(status.Convert(err)), false)
}

func (c *client) end(ctx context.Context, method string, call *outgoing.Call, answer any, err error) {
	used := int64(-1)
	defer func() { call.End(ctx, used) }() // also if Settle panics
	if c.opts.Settle != nil {
		used = c.opts.Settle(ctx, method, answer, err)
	}
}
