// Package gatehttp is what the adapters on net/http share: the facts of a
// request, a body that a gate and the handler can both read, the writing of
// fields and replies, and the recorder behind Capture and Leave. Adapters use
// it; applications do not need it.
//
// What it cannot see it does not guess. A chunked body that middleware outside
// the gate has wrapped and read, or read in part, looks like what is left of it,
// to the gate and to the handler alike. A writer that a handler digs out with its own Unwrap calls
// bypasses the recorder; [net/http.ResponseController] does not.
package gatehttp
