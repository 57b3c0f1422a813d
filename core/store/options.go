package store

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// DefaultPrefix, which is "neap", begins every key if Options.Prefix is empty.
const DefaultPrefix = keyspace.DefaultPrefix

// The range of a Budget.
const (
	minBudget = time.Millisecond
	maxBudget = time.Hour
)

// Options are a store's options. The zero value is ready to use; Open copies it.
type Options struct {
	// Prefix begins every key, of up to 64 printable ASCII characters; empty
	// means DefaultPrefix. Spaces and braces are refused.
	Prefix string
	// SubjectSecret, if set, keeps subjects out of Redis: each key, owner, item and
	// buyer stands there as its HMAC-SHA-256 under this secret of at least 16 bytes.
	// Another secret means other keys, so all state starts afresh.
	SubjectSecret []byte
	// Budget is the most time that one call takes, for whatever has no Budget of
	// its own, and whatever the client's timeouts are. It is from a millisecond to an
	// hour; 0 means limit.DefaultBudget (50 ms) for limits and script.DefaultBudget
	// (250 ms) for everything else.
	Budget time.Duration
}

// settled is a checked copy of the options.
func (o *Options) settled() (Options, error) {
	var own Options
	if o != nil {
		own = *o
		own.SubjectSecret = bytes.Clone(o.SubjectSecret)
	}
	if own.Prefix == "" {
		own.Prefix = DefaultPrefix
	}
	return own, errors.Join(
		keyspace.CheckPrefix(own.Prefix),
		keyspace.CheckSecret(own.SubjectSecret),
		checkBudget(own.Budget),
	)
}

func checkBudget(d time.Duration) error {
	if d == 0 || d >= minBudget && d <= maxBudget {
		return nil
	}
	return fmt.Errorf("Budget is %v: use %v to %v, or 0 for the default of each primitive", d, minBudget, maxBudget)
}
