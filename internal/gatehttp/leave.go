package gatehttp

import "github.com/neap-go/neap/core/gate"

// Leave runs the handler and calls leave once: with what run returns, or with
// nil when run panics. The panic then goes on, unseen and unchanged, which
// http.ErrAbortHandler relies on.
func Leave(leave func(*gate.Reply), run func() *gate.Reply) {
	left := false
	defer func() {
		if !left {
			leave(nil)
		}
	}()
	reply := run()
	left = true
	leave(reply)
}
