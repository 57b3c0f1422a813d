package neighbours

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/gatefake"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// event is what API Gateway makes of a request from source.
func event(source, forwarded string) (e events.APIGatewayV2HTTPRequest) {
	e.RawPath = "/orders"
	e.Headers = map[string]string{"x-forwarded-for": forwarded}
	e.RequestContext.DomainName = "api.example.com"
	e.RequestContext.HTTP.Method = http.MethodGet
	e.RequestContext.HTTP.SourceIP = source
	return e
}

func lambdaStore(t *testing.T, rdb script.Client) *store.Store {
	t.Helper()
	st, err := store.Open(rdb, &store.Options{Budget: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// API Gateway appends its peer to what the client has sent, and that peer is the
// source: the client, or CloudFront in front of it.
func TestLambdaClient(t *testing.T) {
	t.Parallel()
	cloudFront := gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}})
	for _, c := range []struct {
		what              string
		key               gate.Key
		source, forwarded string
		want              string
	}{
		{"a client", gate.ByIP(nil), "192.0.2.7", "192.0.2.7", "ip=192.0.2.7"},
		{"one that forges", gate.ByIP(nil), "192.0.2.7", "203.0.113.9, 192.0.2.7", "ip=192.0.2.7"},
		{"one of IPv6", gate.ByIP(nil), "2001:db8:1:2::7", "2001:db8:1:2::7", "ip=2001:db8:1:2::/64"},
		{"CloudFront not listed: its clients share a key", gate.ByIP(nil), "198.51.100.4", "192.0.2.7, 198.51.100.4", "ip=198.51.100.4"},
		{"CloudFront listed", cloudFront, "198.51.100.4", "192.0.2.7, 198.51.100.4", "ip=192.0.2.7"},
		{"CloudFront listed, and forged", cloudFront, "198.51.100.4", "203.0.113.9, 192.0.2.7, 198.51.100.4", "ip=192.0.2.7"},
	} {
		handle := OnLambda(nethttp.Middleware(told(c.key))(http.NotFoundHandler()), lambdaStore(t, gatefake.Redis(t)), time.Second)
		if got, err := handle(t.Context(), event(c.source, c.forwarded)); err != nil || got.Body != c.want {
			t.Errorf("%s: got the key %q, %v; want %q", c.what, got.Body, err, c.want)
		}
	}
}

// The event of a load balancer has no source, and the adapter leaves RemoteAddr
// empty: only what the balancer has appended names the client.
func TestLambdaBehindALoadBalancer(t *testing.T) {
	t.Parallel()
	for want, key := range map[string]gate.Key{
		"gate: wrong wiring: ByIP: the peer of the request has no IP address": gate.ByIP(nil),
		"ip=192.0.2.7": gate.ByIP(&gate.IPOptions{TrustUnixSocket: true}),
	} {
		adapter := httpadapter.NewALB(SortedQuery(WrittenFields(nethttp.Middleware(told(key))(http.NotFoundHandler()))))
		got, err := adapter.ProxyWithContext(t.Context(), events.ALBTargetGroupRequest{
			HTTPMethod: "GET", Path: "/orders",
			Headers: map[string]string{"host": "api.example.com", "x-forwarded-for": "203.0.113.9, 192.0.2.7"},
		})
		if err != nil || !strings.HasPrefix(got.Body, want) {
			t.Errorf("got the key %q, %v; want %q", got.Body, err, want)
		}
	}
}

// Without WrittenFields the mark of a refusal becomes an empty field, or a null.
func TestLambdaRefusal(t *testing.T) {
	t.Parallel()
	limited := nethttp.Middleware(gate.RateLimit(atMost(t, 1), gate.ByIP(nil), nil))(http.HandlerFunc(ok))
	exchange(t, limited, call{"the one that passes", "/orders", nil, "192.0.2.7", 200})
	const mark = "Neap-Refused-429"
	for what, c := range map[string]struct {
		h      http.Handler
		marked bool
	}{"bare": {limited, true}, "WrittenFields": {WrittenFields(limited), false}} {
		answer, err := httpadapter.NewV2(c.h).ProxyWithContext(t.Context(), event("192.0.2.7", ""))
		if _, marked := answer.Headers[mark]; err != nil || marked != c.marked || answer.StatusCode != http.StatusTooManyRequests || answer.Headers["Retry-After"] == "" {
			t.Errorf("%s: got %d with the fields %v, %v, want a 429 with Retry-After, and %s: %t", what, answer.StatusCode, answer.Headers, err, mark, c.marked)
		}
		rest := events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/orders"}
		rest.RequestContext.Identity.SourceIP = "192.0.2.7"
		got, err := httpadapter.New(c.h).ProxyWithContext(t.Context(), rest)
		if err != nil || got.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("%s: got %d, %v, want 429", what, got.StatusCode, err)
		}
		text, err := json.Marshal(got.MultiValueHeaders)
		if lines, marked := got.MultiValueHeaders[mark]; err != nil || marked != c.marked || lines != nil {
			t.Errorf("%s, REST: got the fields %s, want %s as null: %t", what, text, mark, c.marked)
		}
	}
}

// A REST API's event has its query in a map, which the adapter writes in any order.
func TestLambdaQuery(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		wrap   func(http.Handler) http.Handler
		others bool
	}{
		"bare":        {func(h http.Handler) http.Handler { return h }, true},
		"SortedQuery": {SortedQuery, false},
	} {
		guard, err := idempotency.New(gatefake.Redis(t), "orders", idempotency.Retry{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		runs, others := 0, 0
		adapter := httpadapter.New(c.wrap(nethttp.Middleware(gate.Idempotent(guard, gate.Everyone, nil))(http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				runs++
				if r.FormValue("a") != "1" || r.FormValue("b") != "2 3" {
					t.Errorf("the handler reads the query %q, want a=1 and b=2 3", r.URL.RawQuery)
				}
				w.WriteHeader(http.StatusCreated)
			}))))
		for range 100 {
			got, err := adapter.ProxyWithContext(t.Context(), events.APIGatewayProxyRequest{
				HTTPMethod: "POST", Path: "/orders",
				MultiValueHeaders:               map[string][]string{"Idempotency-Key": {"one"}},
				MultiValueQueryStringParameters: map[string][]string{"a": {"1"}, "b": {"2 3"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got.StatusCode == http.StatusUnprocessableEntity {
				others++
			}
		}
		if runs != 1 || others > 0 != c.others {
			t.Errorf("%s: got %d runs and %d repetitions taken for other requests, want one run, and such repetitions: %t", what, runs, others, c.others)
		}
	}
}

// away is a Redis that takes no calls while it is away.
type away struct {
	script.Client
	gone atomic.Bool
}

func (a *away) Process(ctx context.Context, cmd redis.Cmder) error {
	if a.gone.Load() {
		err := errors.New("away")
		cmd.SetErr(err)
		return err
	}
	return a.Client.Process(ctx, cmd)
}

// When the process freezes, what Redis has not confirmed would wait for the next event.
func TestLambdaFreezes(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		back     bool // while OnLambda waits
		patience time.Duration
	}{"back soon": {true, time.Minute}, "away": {false, 300 * time.Millisecond}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			rdb := &away{Client: gatefake.Redis(t)}
			st := lambdaStore(t, rdb)
			exports, err := inflight.New(st, "exports", 1, &inflight.Options{Budget: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			unconfirmed := func() bool { return exports.Stats().Undoing > 0 }
			var back sync.WaitGroup
			handle := OnLambda(nethttp.Middleware(gate.Concurrency(exports, gate.Everyone, nil))(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					rdb.gone.Store(true) // before the slot is given back
					w.WriteHeader(http.StatusOK)
					if c.back {
						back.Go(func() {
							redistest.Await(t, 20*time.Second, "a release without an answer", unconfirmed)
							rdb.gone.Store(false)
						})
					}
				})), st, c.patience)
			got, err := handle(t.Context(), event("192.0.2.7", ""))
			if err != nil || got.StatusCode != http.StatusOK {
				t.Errorf("got %d, %v, want 200", got.StatusCode, err)
			}
			if unconfirmed() == c.back {
				t.Errorf("when the process freezes a release is not confirmed: %t, want %t", unconfirmed(), !c.back)
			}
			back.Wait()
			rdb.gone.Store(false)
			if err := st.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
