// Package adapter helps to write an adapter, which mounts gates in a framework.
// [Write an adapter] shows how, from the first test to the whole contract, which is package
// gatetest. Applications do not need this package: they use an adapter that exists.
//
// If a framework mounts middleware of net/http, it needs no adapter but nethttp.
//
// # What an adapter consists of
//
//   - Middleware, Handler, Key and Context are what it exports. They begin with
//     [RequireGate], [RequireEndpoint] and [Key].
//   - A [gate.Request] that reads the framework's own request. [SplitTarget], [Peer] and
//     [Wildcard] make what it returns the same for each framework. [Body] lets both a gate
//     and the handler read a body that the server has not read. [Form] writes a form anew
//     that the server has parsed. [Borrow] is for a framework whose contexts read an
//     object that it uses again for other requests.
//   - Functions that put a [gate.Reply] into the response, and read one from it. [Fields]
//     lists a header.
//   - [Leave] calls a gate's Leave after the handler. [End] does so later, if the server
//     writes the response, or a part of it, when the handlers have returned.
//
// [Write an adapter]: https://github.com/neap-go/neap/blob/main/docs/adapters.md
package adapter
