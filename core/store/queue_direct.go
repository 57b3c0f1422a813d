//go:build neap_direct

package store

// The build tag turns the queue off, so that the library's tests can run without it.
const defaultQueue = Direct
