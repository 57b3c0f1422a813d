package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/grpclimit"
	"github.com/neap-go/neap/internal/redistest"
)

func everyone(gate.Request) (string, error) { return "everyone", nil }

// unary is a server with a gate before its unary method.
func unary(gates ...gate.Gate) []grpc.ServerOption {
	var all []grpc.UnaryServerInterceptor
	for _, g := range gates {
		all = append(all, grpclimit.UnaryServerInterceptor(g))
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(all...)}
}

// retryInfo returns what a status says, and 0 if it says nothing.
func retryInfo(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, is := detail.(*errdetails.RetryInfo); is {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// TestEachDenialHasAStatus, and says in the trailer alone whether to try again.
func TestEachDenialHasAStatus(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	down, downClient := redistest.Miniredis(t)
	down.SetError("LOADING Redis is loading the dataset in memory")
	used := hourly(t, 1)
	if _, err := used.Take(t.Context(), "everyone"); err != nil {
		t.Fatal(err)
	}
	slots, err := inflight.New(rdb, "grpc", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slots.Try(t.Context(), "everyone"); err != nil {
		t.Fatal(err)
	}
	away, err := limit.New(downClient, "grpc", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed, Budget: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var blocked gate.List
	if err := blocked.Swap([]string{"everyone"}, nil); err != nil {
		t.Fatal(err)
	}
	refuse := func(status int) gate.Gate {
		return gate.RateLimit(hourly(t, 9), func(gate.Request) (string, error) { return "", gate.Refuse(status, "Not so") }, nil)
	}
	dear := func(gate.Request) (int64, error) { return 10, nil }
	quiet := func(gate.Request, error) {}
	framed := func(gate.Denial) gate.Reply {
		return gate.Reply{Status: 429, Header: []gate.Field{{Name: "Content-Length", Value: "57"}, {Name: "Transfer-Encoding", Value: "chunked"}, {Name: "RateLimit-Policy", Value: "own"}}}
	}
	for name, c := range map[string]struct {
		gate    gate.Gate
		want    codes.Code
		retries bool
		fields  string // in the trailer
	}{
		"the limit":              {gate.RateLimit(used, everyone, nil), codes.ResourceExhausted, true, `"hourly";q=1;w=3600`},
		"one of several limits":  {gate.RateLimits(gate.RateLimit(hourly(t, 9), everyone, nil), gate.RateLimit(used, everyone, nil)), codes.ResourceExhausted, true, `"hourly";q=1;w=3600`},
		"in flight":              {gate.Concurrency(slots, everyone, nil), codes.ResourceExhausted, true, `"inflight";q=1`},
		"a chain":                {gate.Chain(gate.RateLimit(hourly(t, 9), everyone, nil), gate.Concurrency(slots, everyone, nil)), codes.ResourceExhausted, true, `"inflight";q=1`},
		"the block list":         {gate.Block(&blocked, everyone, nil), codes.PermissionDenied, false, ""},
		"no key":                 {gate.RateLimit(hourly(t, 9), gate.ByHeader("X-Account"), nil), codes.InvalidArgument, false, ""},
		"a cost too high":        {gate.RateLimit(hourly(t, 9), everyone, &gate.RateLimitOptions{Cost: dear}), codes.InvalidArgument, false, ""},
		"refused with 401":       {refuse(401), codes.Unauthenticated, false, ""},
		"refused with 403":       {refuse(403), codes.PermissionDenied, false, ""},
		"refused with 404":       {refuse(404), codes.NotFound, false, ""},
		"refused with 418":       {refuse(418), codes.InvalidArgument, false, ""},
		"refused with 429":       {refuse(429), codes.ResourceExhausted, true, ""},
		"an answer of one's own": {gate.RateLimit(used, everyone, &gate.RateLimitOptions{Render: framed}), codes.ResourceExhausted, true, "own"},
		"Redis is away":          {gate.RateLimit(away, everyone, &gate.RateLimitOptions{OnError: quiet}), codes.Unavailable, true, ""},
		"a key of the body":      {gate.RateLimit(hourly(t, 9), gate.ByJSON("/user", nil), &gate.RateLimitOptions{OnError: quiet}), codes.Internal, false, ""},
		"a key that fails":       {gate.RateLimit(hourly(t, 9), func(gate.Request) (string, error) { return "", io.EOF }, &gate.RateLimitOptions{OnError: quiet}), codes.Internal, false, ""},
	} {
		ran := false
		conn := serve(t, &orders{create: func(context.Context, *text) (*text, error) { ran = true; return &text{}, nil }}, unary(c.gate))
		var header, trailer metadata.MD
		err := call(t.Context(), conn, "tea", grpc.Header(&header), grpc.Trailer(&trailer))
		if status.Code(err) != c.want || ran {
			t.Errorf("%s: got %v, and the handler ran: %t, want %v and false", name, err, ran, c.want)
		}
		pushback := trailer.Get("grpc-retry-pushback-ms")
		if len(pushback) != 1 {
			t.Errorf("%s: got the pushback %q, want one", name, pushback)
			continue
		}
		if (pushback[0] != "-1") != c.retries || (retryInfo(err) > 0) != c.retries {
			t.Errorf("%s: got the pushback %q and RetryInfo %v, want a time to wait: %t", name, pushback, retryInfo(err), c.retries)
		}
		if ms, err := strconv.ParseInt(pushback[0], 10, 64); c.retries && (err != nil || ms < 1) {
			t.Errorf("%s: got the pushback %q, want milliseconds", name, pushback)
		}
		if len(header) > 0 {
			t.Errorf("%s: got the header %v, want nothing but a trailer", name, header)
		}
		if got := strings.Join(trailer.Get("ratelimit-policy"), ", "); c.fields != "" && !strings.Contains(got, c.fields) {
			t.Errorf("%s: got the policies %q, want %q", name, got, c.fields)
		}
		for _, field := range []string{"retry-after", "cache-control", "content-length", "transfer-encoding"} {
			if got := trailer.Get(field); len(got) > 0 {
				t.Errorf("%s: got %s %q in the trailer, want no field that only HTTP has", name, field, got)
			}
		}
		for _, text := range []string{"LOADING", "EOF", "everyone"} {
			if strings.Contains(fmt.Sprint(err, trailer), text) {
				t.Errorf("%s: got %v, %v, want no text of an error and no key", name, err, trailer)
			}
		}
	}
}

// TestAGateBehindAGate: what the outer one admitted is in the trailer beside the denial of the
// inner one, and there is still nothing but a trailer, with one pushback.
func TestAGateBehindAGate(t *testing.T) {
	t.Parallel()
	outer, inner := gate.RateLimit(hourly(t, 100), everyone, nil), gate.RateLimit(hourly(t, 1), everyone, nil)
	for name, gates := range map[string][]gate.Gate{"two interceptors": {outer, inner}, "a chain": {gate.Chain(outer, inner)}} {
		conn := serve(t, &orders{}, unary(gates...))
		var header, trailer metadata.MD
		_ = call(t.Context(), conn, "tea")
		err := call(t.Context(), conn, "tea", grpc.Header(&header), grpc.Trailer(&trailer))
		policies := strings.Join(trailer.Get("ratelimit-policy"), ", ")
		if status.Code(err) != codes.ResourceExhausted || len(header) > 0 || len(trailer.Get("grpc-retry-pushback-ms")) != 1 || strings.Count(policies, "hourly") != 2 {
			t.Errorf("%s: got %v with the header %v and the trailer %v, want ResourceExhausted, no header, both policies and one pushback", name, err, header, trailer)
		}
	}
}

// TestADenialFurtherInCounts for the outer gate, also if nothing else does.
func TestADenialFurtherInCounts(t *testing.T) {
	t.Parallel()
	counted := hourly(t, 100)
	outer := gate.RateLimit(counted, everyone, &gate.RateLimitOptions{Count: func(int) bool { return false }})
	conn := serve(t, &orders{}, unary(outer, gate.RateLimit(hourly(t, 1), everyone, nil)))
	for _, want := range []int64{100, 99} { // admitted, and denied
		_ = call(t.Context(), conn, "tea")
		redistest.Await(t, time.Minute, fmt.Sprint(want, " left"), func() bool {
			d, err := counted.Peek(t.Context(), "everyone")
			return err == nil && d.Remaining == want
		})
	}
}

// TestADeniedStream does not run, and says in the trailer when to try again.
func TestADeniedStream(t *testing.T) {
	t.Parallel()
	ran := false
	g := gate.RateLimit(hourly(t, 1), everyone, nil)
	conn := serve(t, &orders{watch: func(grpc.ServerStream) error { ran = true; return nil }}, []grpc.ServerOption{grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(g))})
	if err := open(t.Context(), t, conn).RecvMsg(new(text)); !errors.Is(err, io.EOF) || !ran {
		t.Errorf("the first: got %v, ran %t, want its end", err, ran)
	}
	ran = false
	stream := open(t.Context(), t, conn)
	err := stream.RecvMsg(new(text))
	if status.Code(err) != codes.ResourceExhausted || retryInfo(err) <= 0 || len(stream.Trailer().Get("grpc-retry-pushback-ms")) != 1 || ran {
		t.Errorf("the second: got %v with the trailer %v, ran %t, want ResourceExhausted and when to try again", err, stream.Trailer(), ran)
	}
}

// retries is a service config with which grpc-go sends calls again as fast as it may.
func retries(codes string) grpc.DialOption {
	return grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": [` + codes + `]}}]}`)
}

// TestGrpcWaitsAsLongAsItIsTold before it sends a call again.
func TestGrpcWaitsAsLongAsItIsTold(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	window := 500 * time.Millisecond
	g := gate.RateLimit(limiter(t, rdb, limit.FixedWindow{Limit: 1, Window: window}), everyone, nil)
	conn := serve(t, &orders{}, unary(g), retries(`"RESOURCE_EXHAUSTED"`))
	began := time.Now()
	for range 2 {
		if err := call(t.Context(), conn, "tea"); err != nil {
			t.Errorf("got %v, want no error: grpc-go sends the call again when it may", err)
		}
	}
	if took := time.Since(began); took < window-time.Millisecond {
		t.Errorf("two calls of one in %v took %v, want as long", window, took)
	}
}

// TestGrpcDoesNotTryAgainWhatCannotSucceed, although its policy says that it may.
func TestGrpcDoesNotTryAgainWhatCannotSucceed(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	key := func(gate.Request) (string, error) {
		asked.Add(1)
		return "", gate.Refuse(400, "Not so")
	}
	conn := serve(t, &orders{}, unary(gate.RateLimit(hourly(t, 9), key, nil)), retries(`"INVALID_ARGUMENT"`))
	if err := call(t.Context(), conn, "tea"); status.Code(err) != codes.InvalidArgument || asked.Load() != 1 {
		t.Errorf("got %v after %d attempts, want InvalidArgument after one", err, asked.Load())
	}
}

// TestKeysReadACall as they read a request over HTTP.
func TestKeysReadACall(t *testing.T) {
	t.Parallel()
	type tenantKey struct{}
	var got atomic.Value
	for name, c := range map[string]struct {
		key  gate.Key
		want string
	}{
		"the peer":             {gate.ByIP(nil), "ip=127.0.0.1"},
		"behind a proxy":       {gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), "ip=192.0.2.7"},
		"metadata":             {gate.ByHeader("X-Account"), "header:x-account=alice"},
		"the method":           {gate.ByRoute(), "route=" + create},
		"a value of a context": {gate.ByValue("tenant", tenantKey{}), "tenant=17"},
		"the message": {gate.Tag("item", grpclimit.Key(func(_ context.Context, method string, message any) (string, error) {
			return method + " " + message.(*text).GetValue(), nil
		})), "key:item=" + create + " tea"},
		"the authority": {func(r gate.Request) (string, error) { return r.Method() + " " + r.Host() + r.Path(), nil }, ""},
	} {
		l := hourly(t, 100)
		asked := func(r gate.Request) (string, error) {
			subject, err := c.key(r)
			got.Store(subject)
			return subject, err
		}
		authenticate := func(ctx context.Context, message any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return handler(context.WithValue(ctx, tenantKey{}, 17), message)
		}
		conn := serve(t, &orders{}, []grpc.ServerOption{grpc.ChainUnaryInterceptor(authenticate, grpclimit.UnaryServerInterceptor(gate.RateLimit(l, asked, nil)))})
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-account", "alice", "x-forwarded-for", "192.0.2.7")
		if err := call(ctx, conn, "tea"); err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
		want := c.want
		if want == "" {
			want = "POST " + conn.Target() + create
		}
		if subject := got.Load(); subject != want {
			t.Errorf("%s: got the subject %q, want %q", name, subject, want)
		}
	}
	if _, err := grpclimit.Key(func(context.Context, string, any) (string, error) { return "", nil })(nil); !errors.Is(err, gate.ErrWiring) {
		t.Errorf("a request of another adapter: got %v, want ErrWiring", err)
	}
}

// TestACallIsInFlightUntilItEnds: a unary call until its handler has returned or panicked, a
// stream until its handler has, also when its client cancels it.
func TestACallIsInFlightUntilItEnds(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	slots, err := inflight.New(rdb, "grpc", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	inFlight := func(want int64) {
		t.Helper()
		redistest.Await(t, time.Minute, fmt.Sprint(want, " in flight"), func() bool {
			n, err := slots.InFlight(t.Context(), "everyone")
			return err == nil && n == want
		})
	}
	g := gate.Concurrency(slots, everyone, nil)
	recovers := func(ctx context.Context, message any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = status.Error(codes.Internal, "a panic")
			}
		}()
		return handler(ctx, message)
	}
	o := &orders{
		create: func(_ context.Context, message *text) (*text, error) {
			inFlight(1)
			if message.GetValue() == "panic" {
				panic("the handler")
			}
			return message, nil
		},
		watch: func(stream grpc.ServerStream) error {
			if err := stream.SendMsg(&text{Value: "begun"}); err != nil {
				return err
			}
			return stream.RecvMsg(new(text)) // until the client has ended its part, or is gone
		},
	}
	conn := serve(t, o, []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(recovers, grpclimit.UnaryServerInterceptor(g)),
		grpc.ChainStreamInterceptor(grpclimit.StreamServerInterceptor(g)),
	})
	for message, want := range map[string]codes.Code{"tea": codes.OK, "panic": codes.Internal} {
		if err := call(t.Context(), conn, message); status.Code(err) != want {
			t.Errorf("%s: got %v, want %v", message, err, want)
		}
		inFlight(0)
	}
	for name, end := range map[string]func(stream grpc.ClientStream, cancel func()){
		"the stream ends":       func(stream grpc.ClientStream, _ func()) { _ = stream.CloseSend() },
		"its client cancels it": func(_ grpc.ClientStream, cancel func()) { cancel() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		stream := open(ctx, t, conn)
		if err := stream.RecvMsg(new(text)); err != nil {
			t.Errorf("%s: got %v, want a message", name, err)
		}
		inFlight(1)
		if err := call(t.Context(), conn, "tea"); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: a call beside it: got %v, want ResourceExhausted", name, err)
		}
		end(stream, cancel)
		inFlight(0)
		cancel()
	}
}

// TestADeadlineEndsAStream, and frees its slot on both sides. The client's deadline is the
// server's, too.
func TestADeadlineEndsAStream(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	slots, err := inflight.New(rdb, "grpc", 100, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int64
	o := &orders{watch: func(stream grpc.ServerStream) error {
		reached.Add(1)
		<-stream.Context().Done()
		return stream.Context().Err()
	}}
	conn := serve(t, o, []grpc.ServerOption{
		grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(gate.Concurrency(slots, everyone, nil))),
	}, grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor(hourly(t, 1000), &grpclimit.ClientOptions{Key: account, Concurrency: slots})))
	for timeout := 50 * time.Millisecond; reached.Load() == 0; timeout *= 2 { // a busy machine may not open it in time
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		if stream, err := conn.NewStream(ctx, &service.Streams[0], watch); err == nil {
			if err := stream.RecvMsg(new(text)); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("got %v, want DeadlineExceeded", err)
			}
		}
		cancel()
	}
	for _, subject := range []string{"everyone", "account"} {
		redistest.Await(t, time.Minute, "the slot of "+subject, func() bool {
			n, err := slots.InFlight(t.Context(), subject)
			return err == nil && n == 0
		})
	}
}

// TestAHandlerFindsTheDecision in its context, and settles it.
func TestAHandlerFindsTheDecision(t *testing.T) {
	t.Parallel()
	l := hourly(t, 100)
	g := gate.RateLimit(l, everyone, &gate.RateLimitOptions{InContext: true, Cost: func(gate.Request) (int64, error) { return 10, nil }})
	settle := func(ctx context.Context, used int64) error {
		d, ok := limit.FromContext(ctx)
		if !ok {
			return errors.New("there is no decision")
		}
		_, err := d.Settle(ctx, used)
		return err
	}
	conn := serve(t, &orders{
		create: func(ctx context.Context, message *text) (*text, error) { return message, settle(ctx, 3) },
		watch:  func(stream grpc.ServerStream) error { return settle(stream.Context(), 4) },
	}, []grpc.ServerOption{
		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor(g)), grpc.StreamInterceptor(grpclimit.StreamServerInterceptor(g)),
	})
	if err := call(t.Context(), conn, "tea"); err != nil {
		t.Error(err)
	}
	if err := open(t.Context(), t, conn).RecvMsg(new(text)); !errors.Is(err, io.EOF) {
		t.Errorf("the stream: got %v, want its end", err)
	}
	if d, err := l.Peek(t.Context(), "everyone"); err != nil || d.Remaining != 93 {
		t.Errorf("got %d left, %v, want 93", d.Remaining, err)
	}
}

// TestOnlyFailuresCount: Count gets the status of HTTP that stands for the code.
func TestOnlyFailuresCount(t *testing.T) {
	t.Parallel()
	l := hourly(t, 100)
	var seen []int
	g := gate.RateLimit(l, everyone, &gate.RateLimitOptions{Count: func(status int) bool {
		seen = append(seen, status)
		return gate.OnlyFailures(status)
	}})
	conn := serve(t, &orders{create: func(_ context.Context, message *text) (*text, error) {
		code, err := strconv.Atoi(message.GetValue())
		if err != nil {
			return nil, err
		}
		return message, status.Error(codes.Code(code), "as asked")
	}}, unary(g))
	want, counted := []int{200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401}, int64(16)
	for code := range want {
		if err := call(t.Context(), conn, strconv.Itoa(code)); status.Code(err) != codes.Code(code) {
			t.Errorf("got %v, want %v", err, codes.Code(code))
		}
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("got the statuses %v, want %v", seen, want)
	}
	if d, err := l.Peek(t.Context(), "everyone"); err != nil || d.Remaining != 100-counted {
		t.Errorf("got %d left, %v, want %d", d.Remaining, err, 100-counted)
	}
}

// TestOtherGatesAreRefused when the interceptor is made.
func TestOtherGatesAreRefused(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	locker, err := lock.New(rdb, "grpc", nil)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := idempotency.New(rdb, "grpc", idempotency.Retry{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shop, err := stock.New(rdb, "grpc", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		gate gate.Gate
		want string
	}{
		"a lock":              {gate.Exclusive(locker, everyone, nil), "in the handler, by its own API"},
		"a guard":             {gate.Idempotent(guard, everyone, nil), "in the handler, by its own API"},
		"stock":               {gate.Reserve(shop, everyone, everyone, nil), "in the handler, by its own API"},
		"a guard in a chain":  {gate.Chain(gate.RateLimit(hourly(t, 1), everyone, nil), gate.Idempotent(guard, everyone, nil)), "in the handler, by its own API"},
		"a gate of one's own": {own{}, "use gates that gate.RateLimit"},
		"none":                {nil, "use gates that gate.RateLimit"},
	} {
		for interceptor, make := range map[string]func(){
			"grpclimit.UnaryServerInterceptor":  func() { grpclimit.UnaryServerInterceptor(c.gate) },
			"grpclimit.StreamServerInterceptor": func() { grpclimit.StreamServerInterceptor(c.gate) },
		} {
			func() {
				defer func() {
					if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) || !strings.HasPrefix(got, interceptor) {
						t.Errorf("%s: got the panic %q, want %s to say %q", name, got, interceptor, c.want)
					}
				}()
				make()
			}()
		}
	}
}

type own struct{}

func (own) Enter(gate.Request) gate.Pass { return gate.Pass{} }
