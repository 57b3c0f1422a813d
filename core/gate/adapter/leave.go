package adapter

import "github.com/neap-go/neap/core/gate"

// Leave calls run, which runs the handler, and then calls leave, a [gate.Pass.Leave], once:
// with what run returns, or with nil if run panics. The panic goes on unchanged;
// http.ErrAbortHandler relies on that.
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
