// Package rpc has neap behind gRPC and Connect: limits before the methods of a server, a
// guard around a payment, and a limit for calls to somebody else's service. docs/recipes.md
// shows them. A module of its own, for the sake of these libraries.
package rpc
