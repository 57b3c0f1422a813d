package neighbours

import (
	"net"
	"net/http"

	"github.com/go-kratos/kratos/v2/middleware/recovery"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/rs/cors"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/grpclimit"
	"github.com/neap-go/neap/kratoslimit"
)

// Kratos limits each client on each method, over HTTP and gRPC together, everything over HTTP,
// and each order by its number on a route that no protobuf describes.
func Kratos(listener net.Listener, all, each, orders *limit.Limiter, show khttp.HandlerFunc) (*khttp.Server, *kgrpc.Server) {
	perIP := gate.RateLimit(all, gate.ByIP(nil), nil)
	perMethod := gate.RateLimit(each, gate.Join(gate.ByRoute(), gate.ByIP(nil)), nil)
	browsers := cors.New(cors.Options{AllowedOrigins: []string{"https://shop.example"}})

	overHTTP := khttp.NewServer(
		khttp.Filter(browsers.Handler, kratoslimit.Filter(perIP)), // a second option Filter would replace this one
		khttp.Middleware(recovery.Recovery(), kratoslimit.Middleware(perMethod)),
	)
	overGRPC := kgrpc.NewServer(
		kgrpc.Listener(listener),
		kgrpc.Middleware(recovery.Recovery(), kratoslimit.Middleware(perMethod)),
		kgrpc.StreamInterceptor(grpclimit.StreamServerInterceptor(perMethod)),
	)

	perOrder := gate.RateLimit(orders, gate.ByParam("id"), nil)
	r := overHTTP.Route("/v1", kratoslimit.Filter(perOrder))
	r.Handle(http.MethodGet, "/orders/{id:[0-9]+}", show)
	return overHTTP, overGRPC
}
