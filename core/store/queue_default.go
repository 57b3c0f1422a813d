//go:build !neap_direct

package store

const defaultQueue = Queued
