package store

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/keyspace"
)

// Key is a parsed key of Redis. It is for operators' tools.
type Key struct {
	// Kind is limit, inflight, lock, guard or stock.
	Kind string
	// Name is the name that New was given.
	Name string
	// Subject is the subject as Redis has it: perhaps its hash.
	Subject string
	// Tail is what follows, such as the policy of a limit. It may be empty.
	Tail string
}

// ParseKey parses a key that a limiter, locker, guard or stock on the store has made. ok is
// false if it is not such a key. ParseKey sends nothing.
func (s *Store) ParseKey(key string) (parts Key, ok bool) {
	prefix := keyspace.DefaultPrefix
	if s != nil {
		prefix = cmp.Or(s.opts.Prefix, prefix)
	}
	own, ok := keyspace.Parse(prefix, key)
	return Key(own), ok
}

// Key returns the key of a subject, as ParseKey parses it, without a tail. The error is
// about the kind or the name. Key sends nothing. A nil or zero store has the default
// prefix and no secret.
func (s *Store) Key(kind, name, subject string) (string, error) {
	in, _ := inside.Of(s)
	space, err := in.Space(kind, name)
	if err := errors.Join(keyspace.CheckName("kind", kind), err); err != nil {
		return "", fmt.Errorf("store.Key: %w", err)
	}
	return space.Key(subject, ""), nil
}
