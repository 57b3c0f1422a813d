// Mutants shows that the contract suite can fail. It changes one line of an
// adapter at a time, each change a mistake that an adapter is easily written
// with, runs the adapter's tests on the changed source, and expects them to go
// red:
//
//	go run ./core/gate/gatetest/mutants [-adapter name] [-v]
//
// It exits with 1 when a change does not apply or does not compile, and when
// three times in a row one survives, or the tests fail without any. Nothing in
// the checkout is written: the changed file reaches the compiler as an overlay.
package main
