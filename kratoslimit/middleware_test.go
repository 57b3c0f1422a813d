package kratoslimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/middleware/recovery"
	"github.com/go-kratos/kratos/v2/transport"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/grpclimit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/kratoslimit"
)

// TestOneLimitHoldsOverBoth protocols together.
func TestOneLimitHoldsOverBoth(t *testing.T) {
	t.Parallel()
	m := kratoslimit.Middleware(gate.RateLimit(hourly(t, 2), gate.Join(gate.ByRoute(), gate.ByIP(nil)), nil))
	post, conn := overHTTP(t, &orders{}, khttp.Middleware(m)), overGRPC(t, &orders{}, kgrpc.Middleware(m))
	if a, body := post("tea", nil); a.StatusCode != 200 || body != `"tea"` {
		t.Errorf("the first, over HTTP: got a %d, %s, want the answer", a.StatusCode, body)
	}
	if err := call(t.Context(), conn, "tea"); err != nil {
		t.Errorf("the second, over gRPC: got %v, want no error", err)
	}
	if a, _ := post("tea", nil); a.StatusCode != 429 {
		t.Errorf("the third, over HTTP: got a %d, want a 429", a.StatusCode)
	}
	if err := call(t.Context(), conn, "tea"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the fourth, over gRPC: got %v, want ResourceExhausted", err)
	}
}

// TestKeysAreTheSameOverBoth protocols.
func TestKeysAreTheSameOverBoth(t *testing.T) {
	t.Parallel()
	type tenantKey struct{}
	local := &gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	item := kratoslimit.Key(func(ctx context.Context, operation string, message any) (string, error) {
		return fmt.Sprint(operation, " ", message.(*text).GetValue(), " ", ctx.Value(tenantKey{})), nil
	})
	for name, c := range map[string]struct {
		key       gate.Key
		want      string
		otherwise string // over gRPC
	}{
		"the peer":             {gate.ByIP(nil), "ip=127.0.0.1", ""},
		"behind a proxy":       {gate.ByIP(local), "ip=192.0.2.7", ""},
		"metadata":             {gate.ByHeader("X-Account"), "header:x-account=alice", ""},
		"the operation":        {gate.ByRoute(), "route=" + create, ""},
		"a value of a context": {gate.ByValue("tenant", tenantKey{}), "tenant=17", ""},
		"the message":          {gate.Tag("item", item), "key:item=" + create + " tea 17", ""},
		"the second of two":    {gate.FirstOf(gate.ByHeader("X-None"), gate.Tag("item", item)), "key:item=" + create + " tea 17", ""},
		"the query":            {gate.ByQuery("page"), "query:page=2", "gate: refused: The request lacks the query parameter page"},
		"the path":             {gate.ByPath(), "path=/v1/orders/9", "path=" + create},
		"a parameter":          {gate.ByParam("shop"), "gate: wrong wiring: ByParam: the route " + create + " has no parameter", "gate: wrong wiring: ByParam: the route " + create + " has no parameter"},
		"the body":             {gate.ByJSON("/user", nil), "gate: the body could not be read: gate: wrong wiring: Kratos has decoded the body: use kratoslimit.Key", "gate: the body could not be read: gate: wrong wiring: a call of gRPC has no body"},
	} {
		var got string
		m := []middleware.Middleware{
			func(next middleware.Handler) middleware.Handler {
				return func(ctx context.Context, message any) (any, error) {
					return next(context.WithValue(ctx, tenantKey{}, 17), message)
				}
			},
			kratoslimit.Middleware(gate.RateLimit(hourly(t, 9), func(q gate.Request) (string, error) {
				subject, err := c.key(q)
				if got = subject; err != nil {
					got = err.Error()
				}
				return "everyone", nil
			}, nil)),
		}
		header := http.Header{"X-Account": {"alice"}, "X-Forwarded-For": {"192.0.2.7"}}
		if overHTTP(t, &orders{}, khttp.Middleware(m...))("tea", header); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s over HTTP: got %q, want %q", name, got, c.want)
		}
		if c.otherwise == "" {
			c.otherwise = c.want
		}
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-account", "alice", "x-forwarded-for", "192.0.2.7")
		if err := call(ctx, overGRPC(t, &orders{}, kgrpc.Middleware(m...)), "tea"); err != nil || !strings.HasPrefix(got, c.otherwise) {
			t.Errorf("%s over gRPC: got %q, %v, want %q", name, got, err, c.otherwise)
		}
	}
}

// TestAKeyNeedsMiddleware: it says so in a filter.
func TestAKeyNeedsMiddleware(t *testing.T) {
	t.Parallel()
	item := kratoslimit.Key(func(context.Context, string, any) (string, error) { return "tea", nil })
	var got string
	kratoslimit.Filter(keyOf(item, &got))(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if _, err := item(nil); !errors.Is(err, gate.ErrWiring) || !strings.HasPrefix(got, "kratoslimit.Key, which is for gates of kratoslimit.Middleware") {
		t.Errorf("got %q and %v, want an ErrWiring that names Middleware", got, err)
	}
	mistake := errors.New("mistake")
	var told error
	tell := &gate.RateLimitOptions{OnError: func(_ gate.Request, err error) { told = err }}
	failing := kratoslimit.Key(func(context.Context, string, any) (string, error) { return "", mistake })
	m := kratoslimit.Middleware(gate.RateLimit(hourly(t, 9), failing, tell))
	if a, _ := overHTTP(t, &orders{}, khttp.Middleware(m))("tea", nil); a.StatusCode != 500 || told != mistake {
		t.Errorf("got a %d, and the hook %v, want a 500 and the error as it was", a.StatusCode, told)
	}
}

// TestARouteByHand that runs Kratos' middleware has its template, without expressions, and its
// parameters.
func TestARouteByHand(t *testing.T) {
	t.Parallel()
	var key string
	server := khttp.NewServer(khttp.Middleware(kratoslimit.Middleware(gate.RateLimit(hourly(t, 9), func(q gate.Request) (string, error) {
		var err error
		key, err = gate.Join(gate.ByRoute(), gate.ByParam("id"))(q)
		return key, err
	}, nil))))
	server.Route("/v1").GET("/orders/{id:[0-9]+}", func(ctx khttp.Context) error {
		_, err := ctx.Middleware(func(context.Context, any) (any, error) { return nil, done(ctx) })(ctx, nil)
		return err
	})
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/orders/%37", nil))
	if want := "join=21:route=/v1/orders/{id}10:param:id=7"; w.Code != 200 || key != want {
		t.Errorf("got a %d and the key %q, want %q", w.Code, key, want)
	}
}

// TestARequestIsInFlightUntilItEnds, with an error or a panic, too.
func TestARequestIsInFlightUntilItEnds(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	slots, err := inflight.New(rdb, "kratos", 1, &inflight.Options{Fail: store.FailClosed, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	inFlight := func(want int64) {
		t.Helper()
		redistest.Await(t, time.Minute, fmt.Sprint(want, " in flight"), func() bool {
			n, err := slots.InFlight(context.WithoutCancel(t.Context()), "everyone")
			return err == nil && n == want
		})
	}
	o := &orders{create: func(_ context.Context, message *text) (*text, error) {
		inFlight(1)
		switch message.GetValue() {
		case "panic":
			panic("the handler")
		case "error":
			return nil, kerrors.Conflict("", "")
		}
		return message, nil
	}}
	m := []middleware.Middleware{recovery.Recovery(), kratoslimit.Middleware(gate.Concurrency(slots, everyone, nil))}
	post, conn := overHTTP(t, o, khttp.Middleware(m...)), overGRPC(t, o, kgrpc.Middleware(m...))
	for message, want := range map[string]int{"tea": 200, "panic": 500, "error": 409} {
		if a, _ := post(message, nil); a.StatusCode != want {
			t.Errorf("%s over HTTP: got a %d, want %d", message, a.StatusCode, want)
		}
		inFlight(0)
		if err := call(t.Context(), conn, message); kerrors.Code(err) != want {
			t.Errorf("%s over gRPC: got %v, want %d", message, err, want)
		}
		inFlight(0)
	}
}

// TestAHandlerFindsTheDecision in its context, and settles it.
func TestAHandlerFindsTheDecision(t *testing.T) {
	t.Parallel()
	l := hourly(t, 100)
	m := kratoslimit.Middleware(gate.RateLimit(l, everyone, &gate.RateLimitOptions{InContext: true, Cost: func(gate.Request) (int64, error) { return 10, nil }}))
	o := &orders{create: func(ctx context.Context, message *text) (*text, error) {
		d, ok := limit.FromContext(ctx)
		if !ok {
			return nil, errors.New("there is no decision")
		}
		_, err := d.Settle(ctx, 3)
		return message, err
	}}
	if a, body := overHTTP(t, o, khttp.Middleware(m))("tea", nil); a.StatusCode != 200 {
		t.Errorf("over HTTP: got a %d, %s", a.StatusCode, body)
	}
	if err := call(t.Context(), overGRPC(t, o, kgrpc.Middleware(m)), "tea"); err != nil {
		t.Errorf("over gRPC: %v", err)
	}
	if got := left(t, l); got != 94 {
		t.Errorf("got %d left, want 94", got)
	}
}

// TestCountAndSettleGetTheStatusThatIsSent over HTTP, and neither a header nor a body.
func TestCountAndSettleGetTheStatusThatIsSent(t *testing.T) {
	t.Parallel()
	var counted int
	var settled gate.Reply
	l, estimates := hourly(t, 100), hourly(t, 100)
	m := kratoslimit.Middleware(gate.Chain(
		gate.RateLimit(l, everyone, &gate.RateLimitOptions{Count: func(status int) bool {
			counted = status
			return gate.OnlyFailures(status)
		}}),
		gate.RateLimit(estimates, everyone, &gate.RateLimitOptions{Settle: func(_ gate.Request, reply *gate.Reply) int64 {
			settled = *reply
			return 3
		}}),
	))
	failures := map[string]error{
		"none": nil, "conflict": kerrors.Conflict("", ""), "teapot": kerrors.New(418, "", ""), "status": status.Error(codes.NotFound, ""), "wrapped": fmt.Errorf("an %w", kerrors.Forbidden("", "")), "other": io.EOF,
	}
	post := overHTTP(t, &orders{create: func(ctx context.Context, message *text) (*text, error) {
		if tr, ok := transport.FromServerContext(ctx); ok {
			tr.ReplyHeader().Set("X-Own", "a")
		}
		return message, failures[message.GetValue()]
	}}, khttp.Middleware(m))
	failed := int64(0)
	for message, want := range map[string]int{"none": 200, "conflict": 409, "teapot": 418, "status": 404, "wrapped": 403, "other": 500} {
		if a, _ := post(message, nil); a.StatusCode != want || counted != want || !reflect.DeepEqual(settled, gate.Reply{Status: want, Partial: true}) {
			t.Errorf("%s: got a %d, Count got %d and Settle %+v, want %d, Partial, and neither header nor body", message, a.StatusCode, counted, settled, want)
		}
		if want >= 400 {
			failed++
		}
	}
	if got, of := left(t, l), left(t, estimates); got != 100-failed || of != 100-3*6 {
		t.Errorf("got %d left by Count and %d by Settle, want %d and 82", got, of, 100-failed)
	}
}

// TestStreamsPassMiddleware, which Kratos runs for unary methods alone. The interceptor of
// grpclimit limits them.
func TestStreamsPassMiddleware(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]bool{"middleware alone": false, "the interceptor": true} {
		g := gate.RateLimit(hourly(t, 1), everyone, nil)
		options := []kgrpc.ServerOption{kgrpc.Middleware(kratoslimit.Middleware(g))}
		if limits {
			options = append(options, kgrpc.StreamInterceptor(grpclimit.StreamServerInterceptor(g)))
		}
		var ran atomic.Int64
		conn := overGRPC(t, &orders{watch: func(stream grpc.ServerStream) error {
			ran.Add(1)
			return stream.SendMsg(&text{Value: "done"})
		}}, options...)
		var last error
		for range 2 {
			stream, err := conn.NewStream(t.Context(), &service.Streams[0], watch)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(stream.SendMsg(&text{}), stream.CloseSend()); err != nil {
				t.Fatal(err)
			}
			last = stream.RecvMsg(new(text))
		}
		if denied := status.Code(last) == codes.ResourceExhausted; denied != limits || (ran.Load() == 1) != limits {
			t.Errorf("%s: the second of one stream: got %v after %d runs, want it denied: %t", name, last, ran.Load(), limits)
		}
	}
}

// TestOutsideOfAServer the error names the remedy, and Kratos sends nothing of it.
func TestOutsideOfAServer(t *testing.T) {
	t.Parallel()
	ran := false
	_, err := kratoslimit.Middleware(gate.RateLimit(hourly(t, 1), everyone, nil))(func(context.Context, any) (any, error) {
		ran = true
		return nil, nil
	})(t.Context(), nil)
	as := kerrors.FromError(err)
	if ran || !errors.Is(err, gate.ErrWiring) || !strings.Contains(err.Error(), "khttp.NewServer") || as.Code != 500 || strings.Contains(as.Message, "kratoslimit") {
		t.Errorf("got %v, and the handler ran: %t, want a 500 that is an ErrWiring", err, ran)
	}
}

// TestOtherGatesAreRefused when the middleware is made.
func TestOtherGatesAreRefused(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	locker, err := lock.New(rdb, "kratos", nil)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := idempotency.New(rdb, "kratos", idempotency.Retry{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, make := range map[string]func(){
		"kratoslimit.Middleware: the gate answers with what HTTP alone can say": func() { kratoslimit.Middleware(gate.Exclusive(locker, everyone, nil)) },
		"kratoslimit.Middleware: the gate answers with what":                    func() { kratoslimit.Middleware(gate.Chain(gate.Idempotent(guard, everyone, nil))) },
		"kratoslimit.Middleware: the gate is a <nil>":                           func() { kratoslimit.Middleware(nil) },
		"kratoslimit.Filter: the gate is nil":                                   func() { kratoslimit.Filter(nil) },
		"kratoslimit.Key: f is nil":                                             func() { kratoslimit.Key(nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
					t.Errorf("got the panic %q, want %q", got, want)
				}
			}()
			make()
		}()
	}
	kratoslimit.Filter(gate.Exclusive(locker, everyone, nil)) // which can answer it
}
