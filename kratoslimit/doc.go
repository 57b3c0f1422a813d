// Package kratoslimit puts gates in front of Kratos v2: of the methods of its services, over
// HTTP and gRPC, and of routes over HTTP.
//
//	khttp.NewServer(khttp.Middleware(recovery.Recovery(), kratoslimit.Middleware(g)))
//	kgrpc.NewServer(kgrpc.Middleware(recovery.Recovery(), kratoslimit.Middleware(g)))
//
// # Where to mount a gate
//
//	methods of generated services    Middleware, in the option Middleware of both servers
//	streams over gRPC                grpclimit.StreamServerInterceptor, in kgrpc.StreamInterceptor
//	routes made by hand over HTTP    Filter, in Route of the server, or around a handler
//	everything over HTTP             Filter, in khttp.Filter
//
// Mount it inside of recovery, logging, CORS and authentication. Give each of these options
// once, with all that it is to have: in Kratos a second one replaces the first, and says
// nothing.
//
// Kratos has decoded a request when Middleware sees it. A limit on what decoding costs is a
// Filter. Kratos runs Middleware for unary methods alone, and its StreamMiddleware for each
// message of a stream: do not mount Middleware there.
//
// # Which gates
//
// Middleware takes the gates of package grpclimit: gate.RateLimit, gate.RateLimits,
// gate.Concurrency and gate.Block, and a gate.Chain of these. Filter takes every gate.
//
// # Keys
//
// For Middleware the route is the operation, such as "/shop.Orders/Create", over HTTP and gRPC
// alike. So a subject by gate.ByIP, gate.ByHeader, gate.ByRoute or gate.ByValue is the same
// over both, and so is its limit. For what stands in the message use [Key]: there is no body.
// The rest is as package grpclimit says of a call, and as package nethttp says of a request.
//
// For Filter the route is the path template without regular expressions: "/orders/{id}" for
// "/orders/{id:[0-9]+}". In khttp.Filter there is no route yet.
//
// # Answers
//
// Over gRPC, a denial is that of package grpclimit.
//
// Over HTTP, a denial of Filter is that of package nethttp. A denial of Middleware is an error
// of Kratos. Its status and its header fields are those of package nethttp, such as Retry-After
// and RateLimit. Its body is what the ErrorEncoder of the server writes, by default Kratos' own
// format, with the title of the denial as the message. For a 429 the reason is RATELIMIT, as in
// Kratos' own middleware. So of what a Render returns, Middleware sends the status and the
// header, and not the body.
//
// Count and Settle of a gate get the status of the error, over HTTP as Kratos sends it. They get
// neither header nor body from Middleware.
package kratoslimit
