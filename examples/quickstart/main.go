// Quickstart serves the same limited routes on net/http, Gin, Echo v4 and v5,
// Fiber v2 and v3, and Hertz.
//
// By default it sends them requests, shows what they answer and fails when a
// count is off; with -serve it waits for requests of yours. Without -redis the
// state is in an embedded Redis, so that nothing has to be installed.
package main

import "github.com/neap-go/neap/examples/internal/quickstart"

func main() {
	quickstart.Quickstart{Frameworks: frameworks, Build: newer(newerModule())}.Main()
}
