// Package gatehttp is what the adapters on net/http share beside core/gate/adapter: what a
// gate reads of an *http.Request, functions that write fields and replies, and the recorder
// behind Capture and Leave. Adapters use it; applications do not need it.
//
// It does not guess what it cannot see. If middleware outside the gate has wrapped a
// chunked body and read it, whole or in part, the gate and the handler see only what is
// left of it. A handler that calls Unwrap itself to get at a writer bypasses the
// recorder; [net/http.ResponseController] does not.
package gatehttp
