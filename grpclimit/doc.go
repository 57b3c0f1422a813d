// Package grpclimit puts gates in front of the methods of a gRPC server, and limits the calls
// of a gRPC client.
//
//	grpc.NewServer(
//		grpc.ChainUnaryInterceptor(grpclimit.UnaryServerInterceptor(g)),
//		grpc.ChainStreamInterceptor(grpclimit.StreamServerInterceptor(g)),
//	)
//
// Mount the interceptors inside those that recover panics, log and authenticate.
//
// # Which gates
//
// A gate must be one of gate.RateLimit, gate.RateLimits, gate.Concurrency or gate.Block, or a
// gate.Chain of these. A guard, a lock and a stock are called in the handler, by their own
// API: what gate.Idempotent stores, for example, is an answer of HTTP.
//
// # Keys
//
// Keys read a call as they read a request over HTTP. Its header is the metadata, its host the
// authority, its peer the connection's; the path and the route are both the full method, such
// as "/shop.Orders/Create". So gate.ByIP, gate.ByHeader, gate.ByRoute and gate.ByValue work,
// with trusted proxies as usual. There are no parameters and no body. For what stands in the
// message, use [Key]. Behind grpc.UnknownServiceHandler the client chooses the method, and so
// the route.
//
// # Answers
//
// A call that is denied ends with a status:
//
//	the limit is reached, or too many calls are in flight    ResourceExhausted
//	Redis did not answer, or the call's context ended        Unavailable
//	the call has no usable key, or a cost that is too high   InvalidArgument
//	gate.Refuse with 401, 403, 404 or 429                    Unauthenticated, PermissionDenied, NotFound, ResourceExhausted
//	gate.Block                                               PermissionDenied
//	the wiring is wrong, or a function of yours failed       Internal
//
// If waiting helps, the status has a google.rpc.RetryInfo, which clients such as those of
// OpenTelemetry need to try again at all. The trailer then also has grpc-retry-pushback-ms,
// which grpc-go heeds if the code is among the retryableStatusCodes of its service config. If
// waiting does not help, there is no RetryInfo, and the pushback is -1: do not try again.
//
// The fields RateLimit-Policy and RateLimit stand in the trailer, as over HTTP. That is a
// convention of neap alone. All metadata stands in the trailer, because clients of gRPC heed
// the pushback only in an answer that has nothing but a trailer. So an interceptor outside of
// these must not call grpc.SetHeader, and grpc.Server.ServeHTTP always sends a header.
//
// Count and Settle of a gate get the status of HTTP that google.rpc.Code gives for the code of
// the handler's error, and neither header nor body.
//
// # Streams
//
// A stream is one call: it is decided before the handler runs, and ends when the handler has
// returned.
package grpclimit
