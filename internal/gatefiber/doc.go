// Package gatefiber is what the adapters of all versions of Fiber share: what gates see
// of a request of fasthttp, functions that write fields and replies, and how Fiber writes
// a path. It imports fasthttp and no Fiber. Adapters use it; applications do not need it.
package gatefiber
