package neighbours

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	apimd "github.com/go-kratos/kratos/v2/api/metadata"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/kratoslimit"
	"github.com/neap-go/neap/nethttp"
)

// services is what Kratos' gRPC server has by itself, over HTTP.
type services struct{}

func (services) ListServices(context.Context, *apimd.ListServicesRequest) (*apimd.ListServicesReply, error) {
	return &apimd.ListServicesReply{}, nil
}

func (services) GetServiceDesc(context.Context, *apimd.GetServiceDescRequest) (*apimd.GetServiceDescReply, error) {
	return &apimd.GetServiceDescReply{}, nil
}

func shown(ctx khttp.Context) error { return ctx.String(http.StatusOK, ctx.Vars().Get("id")) }

// TestKratos has one limit over HTTP and gRPC, for generated code and for a route by hand.
func TestKratos(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	overHTTP, overGRPC := Kratos(listener, atMost(t, 8), atMost(t, 2), atMost(t, 1), shown)
	apimd.RegisterMetadataHTTPServer(overHTTP, services{})
	started := make(chan error, 1)
	go func() { started <- overGRPC.Start(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		if err := overGRPC.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err := <-started; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	list := func() error {
		_, err := apimd.NewMetadataClient(conn).ListServices(t.Context(), &apimd.ListServicesRequest{})
		return err
	}
	if err := list(); err != nil {
		t.Errorf("over gRPC: got %v, want no error", err)
	}
	exchange(t, overHTTP,
		call{"the same method over HTTP", "/services", nil, "127.0.0.1", 200},
		call{"a third time", "/services", nil, "127.0.0.1", 429},
		call{"another method", "/services/shop.Orders", nil, "127.0.0.1", 200},
		call{"another client", "/services", nil, "192.0.2.2", 200},
	)
	if err := list(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the method over gRPC again: got %v, want ResourceExhausted", err)
	}
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		stream, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != want {
			t.Errorf("stream %d: got %v, want %v", i, err, want)
		}
	}
	preflight := http.Header{"Origin": {"https://shop.example"}, "Access-Control-Request-Method": {"GET"}}
	exchange(t, overHTTP,
		call{"an order", "/v1/orders/7", nil, "", 200},
		call{"the order again", "/v1/orders/7", nil, "", 429},
		call{"in another spelling", "/v1/orders/%37", nil, "", 429},
		call{"in one that the router redirects", "//v1/orders/7", nil, "", 301},
		call{"another order", "/v1/orders/8", nil, "", 200},
		call{"not found", "/nowhere", nil, "", 404},
		call{"not found", "/nowhere", nil, "", 404},
		call{"not found", "/nowhere", nil, "", 404},
		call{"everything over HTTP is limited", "/nowhere", nil, "", 429},
		call{"but preflights are not", "OPTIONS /v1/orders/7", preflight, "", 204},
	)
}

// TestKratosASecondFilter replaces the first, so the limit is gone.
func TestKratosASecondFilter(t *testing.T) {
	t.Parallel()
	pass := func(next http.Handler) http.Handler { return next }
	limited := func() khttp.FilterFunc {
		return kratoslimit.Filter(gate.RateLimit(atMost(t, 1), gate.ByIP(nil), nil))
	}
	for want, options := range map[int][]khttp.ServerOption{
		404: {khttp.Filter(limited()), khttp.Filter(pass)},
		429: {khttp.Filter(limited(), pass)},
	} {
		exchange(t, khttp.NewServer(options...), call{"the first", "/", nil, "", 404}, call{"the second", "/", nil, "", want})
	}
}

// TestKratosRoutes: nethttp alone does not know Kratos' route, and no gate does before the router.
func TestKratosRoutes(t *testing.T) {
	t.Parallel()
	serve := func(before bool, filter khttp.FilterFunc) http.Handler {
		var options []khttp.ServerOption
		if before {
			options = append(options, khttp.Filter(filter))
		}
		server := khttp.NewServer(options...)
		if before {
			server.Route("/v1").GET("/orders/{id}", shown)
		} else {
			server.Route("/v1", filter).GET("/orders/{id}", shown)
		}
		return server
	}
	const unknown = "gate: wrong wiring: "
	for what, c := range map[string]struct {
		h    http.Handler
		want string
	}{
		"ByParam in Route":                {serve(false, kratoslimit.Filter(told(gate.ByParam("id")))), "param:id=7"},
		"ByRoute in Route":                {serve(false, kratoslimit.Filter(told(gate.ByRoute()))), "route=/v1/orders/{id}"},
		"ByParam in Filter":               {serve(true, kratoslimit.Filter(told(gate.ByParam("id")))), unknown},
		"ByParam in Route by nethttp":     {serve(false, nethttp.Middleware(told(gate.ByParam("id")))), unknown},
		"ByIP in Route by nethttp":        {serve(false, nethttp.Middleware(told(gate.ByIP(nil)))), "ip=192.0.2.1"},
		"MuxVar, because Kratos uses mux": {serve(false, nethttp.Middleware(told(MuxVar("id")))), "key:id=7"},
	} {
		if got := keyOf(c.h, "/v1/orders/7"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
}
