// Quickstart is what examples/quickstart is, for Echo v5, Fiber v3 and Hertz.
// examples/quickstart builds and runs it, so that its demo shows all frameworks.
package main

import "github.com/neap-go/neap/examples/internal/quickstart"

func main() {
	quickstart.Quickstart{Frameworks: frameworks}.Main()
}
