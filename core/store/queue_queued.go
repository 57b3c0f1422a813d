//go:build neap_queued

package store

// DefaultQueue is how calls are sent if Options.Queue is 0. With the build tag neap_queued the
// library's tests run over the queue.
const DefaultQueue = Queued
