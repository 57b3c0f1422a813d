package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/script"
)

// within is the inside of a Store, as an [inside.Store].
type within Store

func init() { //nolint:gochecknoinits // package script needs it and cannot import this package
	inside.Of = func(rdb call.Processor) (inside.Store, error) {
		switch s := rdb.(type) {
		case *Store:
			if !s.made() {
				return (*within)(nil), errStore
			}
			return (*within)(s), nil
		case interface{ made() bool }: // it has a Store embedded, and would hide its options
			return nil, fmt.Errorf("%w: rdb is a %T, which stands before a store: pass the store itself", script.ErrClient, rdb)
		}
		return nil, inside.ErrNone
	}
}

// Send asks the breaker of the call's server and budget.
func (s *within) Send(ctx context.Context, c *call.Call, budget time.Duration) error {
	b := s.nodes.breaker(ctx, c.Key(), budget)
	err := b.send(ctx, c, s.contact.budget(b.node, budget))
	if err == nil {
		s.nodes.found()
		return nil
	}
	b.node.refused(err)
	return err
}

func (s *within) Budget(otherwise time.Duration) time.Duration {
	if s == nil || s.opts.Budget == 0 {
		return otherwise
	}
	return s.opts.Budget
}

func (s *within) Client() call.Processor { return s.client }

func (s *within) Node(ctx context.Context, key string) string {
	_, address := s.nodes.server(ctx, key)
	return address
}

func (s *within) Space(kind, name string) (keyspace.Space, error) {
	if s == nil {
		return keyspace.New(kind, name, keyspace.DefaultPrefix, nil)
	}
	space, err := keyspace.New(kind, name, s.opts.Prefix, s.opts.SubjectSecret)
	if s.opts.StoredSubjects {
		space = space.Stored()
	}
	return space, err
}

func (s *within) Pending() *atomic.Int64 {
	if s == nil {
		return nil
	}
	return &s.pending
}

func (s *within) Leases() *lease.Wheel {
	if s == nil {
		return nil
	}
	return s.leases
}

func (s *within) IsOpen(budget time.Duration) bool { return s.nodes.open(budget) }
