// Quickstart is what examples/quickstart is, for Echo v5 and Fiber v3. examples/quickstart
// builds and runs it, so that its demo shows all frameworks.
package main

import "github.com/neap-go/neap/examples/internal/quickstart"

func main() {
	quickstart.Quickstart{Frameworks: frameworks}.Main()
}
