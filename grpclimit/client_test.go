package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/grpclimit"
	"github.com/neap-go/neap/internal/redistest"
)

// partner answers with what it is asked for: how many milliseconds to wait, after "down" as
// Unavailable.
func partner(_ context.Context, message *text) (*text, error) {
	if message.GetValue() == "tea" {
		return message, nil
	}
	text, down := strings.CutPrefix(message.GetValue(), "down ")
	ms, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	st := status.New(codes.ResourceExhausted, "too many")
	if down {
		st = status.New(codes.Unavailable, "one instance restarts")
	}
	if ms > 0 {
		if st, err = st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(ms) * time.Millisecond)}); err != nil {
			return nil, err
		}
	}
	return nil, st.Err()
}

// account is the subject of all connections of a test, which have different targets.
func account(context.Context, string) (string, error) { return "account", nil }

// TestACallThatIsDeniedIsNotMade, and its error says when to try again, as a LimitedError and
// as a status.
func TestACallThatIsDeniedIsNotMade(t *testing.T) {
	t.Parallel()
	l, made := hourly(t, 1), 0
	conn := serve(t, &orders{create: func(ctx context.Context, message *text) (*text, error) { made++; return partner(ctx, message) }}, nil,
		grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(l, nil)), grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor(l, nil)))
	if err := call(t.Context(), conn, "tea"); err != nil {
		t.Fatal(err)
	}
	err := call(t.Context(), conn, "tea")
	_, fault := conn.NewStream(t.Context(), &service.Streams[0], watch)
	for name, err := range map[string]error{"a call": err, "a stream": fault} {
		var denied *limit.LimitedError
		if !errors.As(err, &denied) || !errors.Is(err, limit.ErrLimited) || status.Code(err) != codes.ResourceExhausted ||
			retryInfo(err) != denied.RetryAfter || denied.RetryAfter <= 0 || made != 1 {
			t.Errorf("%s: got %v with RetryInfo %v, and %d calls, want a LimitedError that says when, and one call", name, err, retryInfo(err), made)
		}
	}
	if d, err := l.Peek(t.Context(), conn.CanonicalTarget()); err != nil || d.Remaining != 0 {
		t.Errorf("got %d left of the target, %v, want none", d.Remaining, err)
	}
}

// TestWhatThePartnerSaysHoldsForAllProcesses: the RetryInfo of its ResourceExhausted, and
// nothing without. An Unavailable may speak for one instance.
func TestWhatThePartnerSaysHoldsForAllProcesses(t *testing.T) {
	t.Parallel()
	for asks, want := range map[string]bool{"60000": true, "down 60000": false, "0": false, "tea": false} {
		_, rdb := redistest.Miniredis(t)
		policy := limit.FixedWindow{Name: "hourly", Limit: 100, Window: time.Hour}
		opts := &grpclimit.ClientOptions{Key: account}
		client := grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(limiter(t, rdb, policy), opts))
		one := serve(t, &orders{create: partner}, nil, client)
		other := serve(t, &orders{}, nil, grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(limiter(t, rdb, policy), opts)))
		if err := call(t.Context(), one, asks); errors.Is(err, limit.ErrLimited) || (err != nil) != (asks != "tea") {
			t.Errorf("%s: got %v, want the partner's answer", asks, err)
		}
		err := call(t.Context(), other, "tea")
		var denied *limit.LimitedError
		if held := errors.As(err, &denied) && denied.Decision.Held() && denied.RetryAfter <= time.Minute; held != want || !want && err != nil {
			t.Errorf("%s: then got %v, want it on hold: %t", asks, err, want)
		}
	}
}

// TestADenialIsNotThePartners: that of an inner interceptor puts nothing on hold.
func TestADenialIsNotThePartners(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	outer := limiter(t, rdb, limit.FixedWindow{Name: "hourly", Limit: 100, Window: time.Hour})
	inner := hourly(t, 1)
	conn := serve(t, &orders{}, nil, grpc.WithChainUnaryInterceptor(
		grpclimit.UnaryClientInterceptor(outer, &grpclimit.ClientOptions{Key: account}), grpclimit.UnaryClientInterceptor(inner, nil)))
	_ = call(t.Context(), conn, "tea")
	if err := call(t.Context(), conn, "tea"); !errors.Is(err, limit.ErrLimited) {
		t.Errorf("over the inner limit: got %v, want ErrLimited", err)
	}
	if d, err := outer.Peek(t.Context(), "account"); err != nil || d.Held() || d.Remaining != 98 {
		t.Errorf("the outer limit: got %+v, %v, want nothing on hold and 98 left", d, err)
	}
}

// TestErrorsBeforeACallHaveAStatus, which names no key.
func TestErrorsBeforeACallHaveAStatus(t *testing.T) {
	t.Parallel()
	down, rdb := redistest.Miniredis(t)
	l := limiter(t, rdb, limit.FixedWindow{Name: "hourly", Limit: 9, Window: time.Hour})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		opts grpclimit.ClientOptions
		down bool
		want codes.Code
	}{
		"a cost too high":       {t.Context(), grpclimit.ClientOptions{Key: account, Cost: func(context.Context, string, any) int64 { return 10 }}, false, codes.InvalidArgument},
		"an empty key":          {t.Context(), grpclimit.ClientOptions{Key: func(context.Context, string) (string, error) { return "", nil }}, false, codes.InvalidArgument},
		"a key that fails":      {t.Context(), grpclimit.ClientOptions{Key: func(context.Context, string) (string, error) { return "", errors.New("account of ann") }}, false, codes.Unavailable},
		"a key with a status":   {t.Context(), grpclimit.ClientOptions{Key: func(context.Context, string) (string, error) { return "", status.Error(codes.Unauthenticated, "who?") }}, false, codes.Unauthenticated},
		"its context has ended": {canceled, grpclimit.ClientOptions{Key: account}, false, codes.Canceled},
		"Redis is away":         {t.Context(), grpclimit.ClientOptions{Key: account}, true, codes.Unavailable},
	} {
		down.SetError("")
		if c.down {
			down.SetError("NOPERM this user has no permissions to access account")
		}
		conn := serve(t, &orders{}, nil, grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(l, &c.opts)))
		err := call(c.ctx, conn, "tea")
		if st, is := status.FromError(err); !is || st.Code() != c.want || strings.Contains(st.Message(), "account") {
			t.Errorf("%s: got %v, want the status %v, and no key in its text", name, err, c.want)
		}
	}
}

// TestAPanicOfAClientEndsItsCall: the slot is free, and the process lives on.
func TestAPanicOfAClientEndsItsCall(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	l := limiter(t, rdb, limit.FixedWindow{Name: "hourly", Limit: 100, Window: time.Hour})
	slots, err := inflight.New(rdb, "grpc", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]grpclimit.ClientOptions{
		"Told":   {Told: func(*status.Status) time.Duration { panic("Told") }},
		"Settle": {Settle: func(context.Context, string, any, error) int64 { panic("Settle") }},
	} {
		opts.Key, opts.Concurrency = account, slots
		conn := serve(t, &orders{}, nil,
			grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(l, &opts)), grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor(l, &opts)))
		free := func() {
			t.Helper()
			redistest.Await(t, time.Minute, name+" to leave no slot taken", func() bool {
				n, err := slots.InFlight(t.Context(), "account")
				return err == nil && n == 0
			})
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of a call: got no panic, want it", name)
				}
			}()
			_ = call(t.Context(), conn, "tea")
		}()
		free()
		ctx, cancel := context.WithCancel(t.Context())
		open(ctx, t, conn)
		cancel() // grpc-go ends it on a goroutine of its own
		free()
	}
}

// TestACallOfAClientEndsOnce: its slot is free, and it is settled.
func TestACallOfAClientEndsOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does func(ctx context.Context, t *testing.T, conn *grpc.ClientConn)
		want codes.Code
	}{
		"a call": {func(ctx context.Context, t *testing.T, conn *grpc.ClientConn) {
			t.Helper()
			if err := call(ctx, conn, "tea"); err != nil {
				t.Error(err)
			}
		}, codes.OK},
		"a call that fails": {func(ctx context.Context, _ *testing.T, conn *grpc.ClientConn) { _ = call(ctx, conn, "0") }, codes.ResourceExhausted},
		"a stream to its end": {func(ctx context.Context, t *testing.T, conn *grpc.ClientConn) {
			t.Helper()
			stream := open(ctx, t, conn)
			for {
				if err := stream.RecvMsg(new(text)); err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					return
				}
			}
		}, codes.OK},
		"a stream that is canceled": {func(ctx context.Context, t *testing.T, conn *grpc.ClientConn) {
			t.Helper()
			ctx, cancel := context.WithCancel(ctx)
			open(ctx, t, conn)
			cancel()
		}, codes.Canceled},
	} {
		_, rdb := redistest.Miniredis(t)
		l := limiter(t, rdb, limit.FixedWindow{Name: "hourly", Limit: 100, Window: time.Hour})
		slots, err := inflight.New(rdb, "grpc", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 9)
		opts := &grpclimit.ClientOptions{
			Key: account, Concurrency: slots,
			Cost: func(context.Context, string, any) int64 { return 10 },
			Settle: func(_ context.Context, _ string, _ any, err error) int64 {
				ended <- err
				return 3
			},
		}
		conn := serve(t, &orders{create: partner}, nil,
			grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(l, opts)), grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor(l, opts)))
		c.does(t.Context(), t, conn)
		if err := <-ended; status.Code(err) != c.want {
			t.Errorf("%s: Settle got %v, want %v", name, err, c.want)
		}
		redistest.Await(t, time.Minute, name+" to end", func() bool {
			n, fault := slots.InFlight(t.Context(), "account")
			d, err := l.Peek(t.Context(), "account")
			return err == nil && fault == nil && n == 0 && d.Remaining == 97
		})
		if len(ended) > 0 {
			t.Errorf("%s: Settle was called %d times more, want once", name, len(ended))
		}
	}
}

// TestAStreamThatCannotBeOpenedEndsOnce, also if grpc ends it too.
func TestAStreamThatCannotBeOpenedEndsOnce(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer, ...grpc.CallOption) (grpc.ClientStream, error) {
		return nil, status.Error(codes.Unauthenticated, "no token")
	}
	for name, inner := range map[string][]grpc.StreamClientInterceptor{"another interceptor fails": {fails}, "nothing listens": nil} {
		_, rdb := redistest.Miniredis(t)
		slots, err := inflight.New(rdb, "grpc", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var settled atomic.Int64
		opts := &grpclimit.ClientOptions{Key: account, Concurrency: slots, Settle: func(context.Context, string, any, error) int64 { return settled.Add(1) }}
		conn, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithChainStreamInterceptor(append([]grpc.StreamClientInterceptor{grpclimit.StreamClientInterceptor(hourly(t, 100), opts)}, inner...)...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.NewStream(t.Context(), &service.Streams[0], watch); err == nil {
			t.Errorf("%s: got a stream, want an error", name)
		}
		redistest.Await(t, time.Minute, name+" to end", func() bool {
			n, err := slots.InFlight(t.Context(), "account")
			return err == nil && n == 0
		})
		if n := settled.Load(); n != 1 {
			t.Errorf("%s: Settle was called %d times, want once", name, n)
		}
		conn.Close()
	}
}
