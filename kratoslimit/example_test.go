package kratoslimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	apimd "github.com/go-kratos/kratos/v2/api/metadata"
	khttp "github.com/go-kratos/kratos/v2/transport/http"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/kratoslimit"
)

// oneEach admits a request an hour of each subject.
func oneEach() *limit.Limiter {
	limiter, err := limit.NewLocal("kratos", []limit.Policy{limit.FixedWindow{Name: "hourly", Limit: 1, Window: time.Hour}}, nil)
	if err != nil {
		panic(err)
	}
	return limiter
}

// services is a service for which protoc-gen-go-http has generated RegisterMetadataHTTPServer.
type services struct{}

func (services) ListServices(context.Context, *apimd.ListServicesRequest) (*apimd.ListServicesReply, error) {
	return &apimd.ListServicesReply{}, nil
}

func (services) GetServiceDesc(context.Context, *apimd.GetServiceDescRequest) (*apimd.GetServiceDescReply, error) {
	return &apimd.GetServiceDescReply{}, nil
}

func get(server *khttp.Server, path string) {
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	fmt.Println(path, w.Code, w.Header().Get("RateLimit"))
}

func ExampleMiddleware() {
	perMethod := gate.RateLimit(oneEach(), gate.ByRoute(), nil)
	server := khttp.NewServer(khttp.Middleware(kratoslimit.Middleware(perMethod))) // the same for kgrpc.NewServer
	apimd.RegisterMetadataHTTPServer(server, services{})

	get(server, "/services")
	get(server, "/services")
	get(server, "/services/shop.Orders")
	// Output:
	// /services 200 "hourly";r=0;t=3600
	// /services 429 "hourly";r=0;t=3600
	// /services/shop.Orders 200 "hourly";r=0;t=3600
}

func ExampleFilter() {
	perOrder := gate.RateLimit(oneEach(), gate.ByParam("id"), nil)
	server := khttp.NewServer()
	orders := server.Route("/v1", kratoslimit.Filter(perOrder))
	orders.GET("/orders/{id:[0-9]+}", func(ctx khttp.Context) error { return ctx.String(http.StatusOK, "shipped") })

	get(server, "/v1/orders/7")
	get(server, "/v1/orders/7")
	get(server, "/v1/orders/8")
	// Output:
	// /v1/orders/7 200 "hourly";r=0;t=3600
	// /v1/orders/7 429 "hourly";r=0;t=3600
	// /v1/orders/8 200 "hourly";r=0;t=3600
}

func ExampleKey() {
	byName := gate.Tag("service", kratoslimit.Key(func(_ context.Context, _ string, message any) (string, error) {
		asked, ok := message.(*apimd.GetServiceDescRequest)
		if !ok {
			return "", gate.ErrMissing // another method
		}
		return asked.GetName(), nil
	}))
	perName := gate.RateLimit(oneEach(), gate.FirstOf(byName, gate.ByRoute()), nil)
	server := khttp.NewServer(khttp.Middleware(kratoslimit.Middleware(perName)))
	apimd.RegisterMetadataHTTPServer(server, services{})

	get(server, "/services/shop.Orders")
	get(server, "/services/shop.Orders")
	get(server, "/services/shop.Items")
	// Output:
	// /services/shop.Orders 200 "hourly";r=0;t=3600
	// /services/shop.Orders 429 "hourly";r=0;t=3600
	// /services/shop.Items 200 "hourly";r=0;t=3600
}
