//go:build race

package redistest

// Race says whether the race detector is on.
const Race = true
