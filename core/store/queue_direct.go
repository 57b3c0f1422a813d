//go:build neap_direct

package store

// DefaultQueue is how calls are sent if Options.Queue is 0. With the build tag neap_direct the
// library's tests run without the queue.
const DefaultQueue = Direct
