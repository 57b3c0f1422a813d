// Package newer has what Echo v5, Fiber v3 and Hertz are needed for. It is a module of
// its own, because what they require would raise versions of the main module, which
// tests Fiber v2 with the fasthttp of Fiber v2:
//
//   - echo5, fiber3, hertz: the smallest program, as examples/echo and examples/fiber have it
//   - quickstart: the part of examples/quickstart that these frameworks serve, which
//     builds and runs it
//
// Its tests have all seven frameworks beside each other, and neaptest on Echo v5 and Fiber v3.
package newer
