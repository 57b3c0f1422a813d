// Package gatetest is the contract that every adapter of gates must pass, in this module
// and elsewhere. An adapter's test describes how to serve an [App] with its framework,
// and hands that to [Run]:
//
//	func TestContract(t *testing.T) {
//		gatetest.Run(t, gatetest.Driver{Serve: serve, Key: key, Native: native, Redis: redis})
//	}
//
// Run sends real HTTP over loopback connections and compares with one set of
// expectations. So adapters that pass agree with each other in
//
//   - the status and the body,
//   - the set of header fields, their values, and the order of the lines of one field,
//   - what a gate is told about a request and its response.
//
// # Where the contract ends
//
// It does not compare the order between fields, Date, Server, Connection and the framing.
// It says nothing about HTTP/2.
package gatetest
