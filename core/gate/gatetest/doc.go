// Package gatetest is the contract that every adapter of gates must pass, those
// of this module and those of others. An adapter's test describes how to serve
// an [App] with its framework and hands that to [Run]:
//
//	func TestContract(t *testing.T) {
//		gatetest.Run(t, gatetest.Driver{Serve: serve, Key: key, Native: native, Redis: redis})
//	}
//
// Run sends real HTTP over loopback connections and compares with one set of
// expectations, so that adapters which pass agree with each other: in status,
// body, the set of header fields and their values, the order of the lines of one
// field, and in what a gate is told about a request and its response.
//
// Not compared are the order between fields, Date, Server, Connection and the
// framing, and nothing is said of HTTP/2.
package gatetest
