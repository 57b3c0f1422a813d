//go:build !neap_direct

package store

// DefaultQueue is how calls are sent if Options.Queue is 0.
const DefaultQueue = Queued
