// Package redistest gives tests real Redis servers: a standalone one and a
// cluster of three masters, each process of tests its own, on ports and in
// directories of their own. They are gone when the process is, however it
// ended: each server is watched by a shell that lives on a pipe from the
// process and kills the server when the pipe closes.
//
// [Standalone] and [Cluster] are shared by the tests of one process, which
// keep out of each other's way by [Server.Prefix]. A test that stops or pauses
// its server, flushes it or counts its commands takes one of its own from
// [NewStandalone] or [NewCluster]. [Each] runs one test on miniredis, on the
// standalone server and on the cluster.
//
// A client of a server or a cluster connects as the library's user, who may do
// what docs/operations.md says and no more; what is refused fails the tests. An
// Admin may do everything. A program that knows only an address
// connects as the default user, who may also do PEXPIREAT and SELECT.
//
// Where redis-server is missing a test is skipped, and under CI=true it fails.
// REDIS_SERVER names another binary, a valkey-server for instance.
package redistest
