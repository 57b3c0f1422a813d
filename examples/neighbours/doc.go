// Package neighbours has neap beside other libraries: a small recipe for each,
// and a test that shows what goes wrong without it. docs/neighbours.md lists them.
package neighbours
