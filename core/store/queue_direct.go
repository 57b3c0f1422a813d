//go:build neap_direct

package store

// DefaultQueue is how calls are sent if Options.Queue is 0. The build tag neap_direct
// turns the queue off, so that the library's tests can run without it.
const DefaultQueue = Direct
