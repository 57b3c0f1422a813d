// Package script is neap's one door to Redis: it runs a Lua script at most
// once, within a bounded time, and says what became of it.
//
// A go-redis client sends a command again when its reply was lost, which runs
// a script up to four times, sixteen on a cluster, and waits up to ten seconds
// for a server that has stalled. Neither is right for a script that takes a
// permit or a lock. A [Runner] sends every script without retries, makes a
// call again only when Redis said that nothing ran, and gives up when its
// budget is spent, whatever the client's options are. [Script.Decode] puts a
// reply into a struct, and package scripttest finds in a test what would fail in
// production. docs/own-scripts.md leads through a script of one's own.
//
// # Where the guarantee ends
//
// A script whose reply is lost ran once or not at all, and no client can know
// which: [ErrMaybeExecuted]. A failover that loses acknowledged writes loses
// what scripts wrote.
package script
