package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/neap-go/neap/core/limit"
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

// TestACallThatIsDeniedIsNotMade, over the limit or without a slot, when its permit goes back. Its
// error says when to try again, as a LimitedError and as a status.
func TestACallThatIsDeniedIsNotMade(t *testing.T) {
	t.Parallel()
	for why, left := range map[string]int64{"over the limit": 0, "without a slot": 1} {
		l, slots, made := hourly(t, 1), slot(t), 0
		opts := &grpclimit.ClientOptions{Concurrency: slots}
		conn := serve(t, &orders{create: func(ctx context.Context, message *text) (*text, error) { made++; return partner(ctx, message) }}, nil,
			grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(l, opts)), grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor(l, opts)))
		var err error
		if left == 0 {
			_, err = l.Take(t.Context(), conn.CanonicalTarget())
		} else {
			_, err = slots.Try(t.Context(), conn.CanonicalTarget())
		}
		if err != nil {
			t.Fatal(err)
		}
		err = call(t.Context(), conn, "tea")
		_, fault := conn.NewStream(t.Context(), &service.Streams[0], watch)
		for name, err := range map[string]error{"a call": err, "a stream": fault} {
			var denied *limit.LimitedError
			if !errors.As(err, &denied) || !errors.Is(err, limit.ErrLimited) || status.Code(err) != codes.ResourceExhausted ||
				retryInfo(err) != denied.RetryAfter || denied.RetryAfter <= 0 || made != 0 {
				t.Errorf("%s %s: got %v with RetryInfo %v, and %d calls, want a LimitedError that says when, and none", name, why, err, retryInfo(err), made)
			}
		}
		if d, err := l.Peek(t.Context(), conn.CanonicalTarget()); err != nil || d.Remaining != left {
			t.Errorf("%s: got %d left of the target, %v, want %d", why, d.Remaining, err, left)
		}
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
		if held := errors.As(err, &denied) && denied.Decision.OnHold() && denied.RetryAfter <= time.Minute; held != want || !want && err != nil {
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
	if d, err := outer.Peek(t.Context(), "account"); err != nil || d.OnHold() || d.Remaining != 98 {
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
		"a cost too high":     {t.Context(), grpclimit.ClientOptions{Key: account, Cost: func(context.Context, string, any) int64 { return 10 }}, false, codes.InvalidArgument},
		"an empty key":        {t.Context(), grpclimit.ClientOptions{Key: func(context.Context, string) (string, error) { return "", nil }}, false, codes.InvalidArgument},
		"a key that fails":    {t.Context(), grpclimit.ClientOptions{Key: func(context.Context, string) (string, error) { return "", errors.New("account of ann") }}, false, codes.Unavailable},
		"a key with a status": {t.Context(), grpclimit.ClientOptions{Key: func(context.Context, string) (string, error) { return "", status.Error(codes.Unauthenticated, "who?") }}, false, codes.Unauthenticated},
		"a key that wraps one": {t.Context(), grpclimit.ClientOptions{Key: func(context.Context, string) (string, error) {
			return "", fmt.Errorf("account of ann: %w", status.Error(codes.Unauthenticated, "who?"))
		}}, false, codes.Unauthenticated},
		"a key without time": {t.Context(), grpclimit.ClientOptions{Key: func(context.Context, string) (string, error) {
			return "", fmt.Errorf("account of ann: %w", context.DeadlineExceeded)
		}}, false, codes.DeadlineExceeded},
		"its context has ended": {canceled, grpclimit.ClientOptions{Key: account}, false, codes.Canceled},
		"Redis is away":         {t.Context(), grpclimit.ClientOptions{Key: account}, true, codes.Unavailable},
	} {
		down.SetError("")
		if c.down {
			down.SetError("NOPERM this user has no permissions to access account")
		}
		conn := serve(t, &orders{}, nil, grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(l, &c.opts)))
		err := call(c.ctx, conn, "tea")
		for _, err := range []error{err, fmt.Errorf("charge: %w", err)} { // as a handler may return it
			if st, is := status.FromError(err); !is || st.Code() != c.want || strings.Contains(st.Message(), "account") {
				t.Errorf("%s: got %v, want the status %v, and no key in its text", name, err, c.want)
			}
		}
	}
}

// TestAPanicOfAClientEndsItsCall: the slot is free, and the process lives on.
func TestAPanicOfAClientEndsItsCall(t *testing.T) {
	t.Parallel()
	l, slots := hourly(t, 100), slot(t)
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

// TestACallOfAClientEndsOnce: until then it has its slot, and then it is settled. Cost gets the
// message of a call, and Settle its answer.
func TestACallOfAClientEndsOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does   func(ctx context.Context, t *testing.T, conn *grpc.ClientConn, flying func())
		stream bool
		want   codes.Code
	}{
		"a call": {func(ctx context.Context, t *testing.T, conn *grpc.ClientConn, _ func()) {
			t.Helper()
			if err := call(ctx, conn, "tea"); err != nil {
				t.Error(err)
			}
		}, false, codes.OK},
		"a call that fails": {func(ctx context.Context, _ *testing.T, conn *grpc.ClientConn, _ func()) { _ = call(ctx, conn, "0") }, false, codes.ResourceExhausted},
		"a stream to its end": {func(ctx context.Context, t *testing.T, conn *grpc.ClientConn, flying func()) {
			t.Helper()
			stream := open(ctx, t, conn)
			flying()
			for {
				if err := stream.RecvMsg(new(text)); err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					return
				}
			}
		}, true, codes.OK},
		"a stream that is canceled": {func(ctx context.Context, t *testing.T, conn *grpc.ClientConn, flying func()) {
			t.Helper()
			ctx, cancel := context.WithCancel(ctx)
			open(ctx, t, conn)
			flying()
			cancel()
		}, true, codes.Canceled},
	} {
		l, slots := hourly(t, 100), slot(t)
		flying := func() {
			if n, err := slots.InFlight(t.Context(), "account"); err != nil || n != 1 {
				t.Errorf("%s: got %d in flight, %v, want 1", name, n, err)
			}
		}
		type end struct {
			answer any
			err    error
		}
		ended := make(chan end, 9)
		opts := &grpclimit.ClientOptions{
			Key: account, Concurrency: slots,
			Cost: func(_ context.Context, _ string, message any) int64 {
				if (message == nil) != c.stream {
					t.Errorf("%s: Cost got the message %v, want one of a call alone", name, message)
				}
				return 10
			},
			Settle: func(_ context.Context, _ string, answer any, err error) int64 {
				ended <- end{answer, err}
				return 3
			},
		}
		conn := serve(t, &orders{create: func(ctx context.Context, message *text) (*text, error) { flying(); return partner(ctx, message) }}, nil,
			grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor(l, opts)), grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor(l, opts)))
		c.does(t.Context(), t, conn, flying)
		if got := <-ended; status.Code(got.err) != c.want || (got.answer == nil) != c.stream {
			t.Errorf("%s: Settle got %v, %v, want %v, and an answer of a call alone", name, got.answer, got.err, c.want)
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
		slots := slot(t)
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

// direct are both interceptors without a connection, which a Key makes up for. The partner gives
// each method its answer.
func direct(l *limit.Limiter, opts *grpclimit.ClientOptions, answer func(method string) error) [2]func(ctx context.Context, method string) error {
	opts.Key = func(_ context.Context, method string) (string, error) { return method, nil }
	unary, stream := grpclimit.UnaryClientInterceptor(l, opts), grpclimit.StreamClientInterceptor(l, opts)
	return [2]func(context.Context, string) error{
		func(ctx context.Context, method string) error {
			return unary(ctx, method, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				return answer(method)
			})
		},
		func(ctx context.Context, method string) error {
			_, err := stream(ctx, nil, nil, method, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				return nil, answer(method)
			})
			return err
		},
	}
}

// says is the answer of a partner.
func says(message string) error {
	_, err := partner(context.Background(), &text{Value: message})
	return err
}

// TestACallWaits for its permits, also for the end of a hold, which is no longer than MaxHold.
func TestACallWaits(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"a call", "a stream"} {
		synctest.Test(t, func(t *testing.T) {
			l := limiter(t, redistest.BubbleClient(t, redistest.Bubble(t)), limit.FixedWindow{Name: "daily", Limit: 3, Window: 24 * time.Hour})
			does := direct(l, &grpclimit.ClientOptions{Wait: 25 * time.Hour, MaxHold: time.Minute}, func(string) error { return says("7200000") })[i]
			began := time.Now()
			for _, want := range []time.Duration{0, time.Minute, 2 * time.Minute, 24 * time.Hour} {
				if err := does(t.Context(), create); errors.Is(err, limit.ErrLimited) || time.Since(began).Round(time.Minute) != want {
					t.Errorf("%s: got %v after %v, want the partner's answer after %v", name, err, time.Since(began), want)
				}
			}
		})
	}
}

// TestOnErrorIsTold of decisions without Redis, also of denials, of a hold that Redis did not
// confirm, and of a settlement that was given up.
func TestOnErrorIsTold(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"a call", "a stream"} {
		synctest.Test(t, func(t *testing.T) {
			rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
			l, err := limit.New(rdb, "grpc", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, &limit.Options{Holds: true})
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			does := direct(l, &grpclimit.ClientOptions{
				Settle: func(_ context.Context, method string, _ any, _ error) int64 {
					return map[string]int64{"settles": 3}[method] - 1
				},
				OnError: func(_ context.Context, method string, err error) {
					what := "decision"
					if _, is := errors.AsType[*limit.DroppedError](err); is {
						what = "settlement"
					} else if strings.Contains(err.Error(), "limit_ban.lua") {
						what = "hold"
					}
					told = append(told, method+" "+what)
				},
			}, func(method string) error {
				rdb.Cut("refused")
				return says(map[string]string{"holds": "60000"}[method] + "0")
			})[i]
			for _, method := range []string{"settles", "decides", "decides", "holds"} {
				_ = does(t.Context(), method)
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if want := []string{"decides decision", "decides decision", "holds decision", "holds hold", "settles settlement"}; !slices.Equal(told, want) {
				t.Errorf("%s: told of %q, want %q", name, told, want)
			}
		})
	}
}

// TestAClientRefuses what would never work, when it is made.
func TestAClientRefuses(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	without, err := limit.New(rdb, "grpc", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(l *limit.Limiter, opts *grpclimit.ClientOptions){
		"grpclimit.UnaryClientInterceptor: ":  func(l *limit.Limiter, opts *grpclimit.ClientOptions) { grpclimit.UnaryClientInterceptor(l, opts) },
		"grpclimit.StreamClientInterceptor: ": func(l *limit.Limiter, opts *grpclimit.ClientOptions) { grpclimit.StreamClientInterceptor(l, opts) },
	} {
		for want, c := range map[string]struct {
			limiter *limit.Limiter
			opts    grpclimit.ClientOptions
		}{
			"limiter is nil":        {nil, grpclimit.ClientOptions{}},
			"set its Options.Holds": {without, grpclimit.ClientOptions{}},
			"Wait is -1s":           {hourly(t, 1), grpclimit.ClientOptions{Wait: -time.Second}},
			"MaxHold is 1ms":        {hourly(t, 1), grpclimit.ClientOptions{MaxHold: time.Millisecond}},
			"cannot settle": {
				limiter(t, rdb, limit.SlidingLog{Limit: 1, Window: time.Hour}),
				grpclimit.ClientOptions{Settle: func(context.Context, string, any, error) int64 { return 1 }},
			},
		} {
			func() {
				defer func() {
					if got := fmt.Sprint(recover()); !strings.HasPrefix(got, name) || !strings.Contains(got, want) {
						t.Errorf("%s: got the panic %q, want %q in it", name, got, want)
					}
				}()
				make(c.limiter, &c.opts)
			}()
		}
	}
}
