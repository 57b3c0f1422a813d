// Package gatefiber is what the adapters of Fiber share, whatever its version:
// what gates see of a request of fasthttp, the writing of fields and replies, and
// how Fiber writes a path. It compiles fasthttp and no Fiber. Adapters use it;
// applications do not need it.
package gatefiber
