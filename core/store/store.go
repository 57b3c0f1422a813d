package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// Store is one Redis, and the options that everything on it shares. It is immutable and
// safe for concurrent use, and you need not close it. The zero Store is not usable; use
// Open.
type Store struct {
	client    script.Client
	opts      Options
	contact   contact
	nodes     nodes
	pending   atomic.Int64
	observers observers
	gauges    gauges
	leases    *lease.Wheel
	shared    bool // it is of Of
}

func newStore(rdb script.Client, calls *call.Client, opts Options) *Store {
	c := clock{time.Now()}
	s := &Store{
		client: rdb, opts: opts,
		contact: contact{clock: c, most: opts.FirstContact}, nodes: nodes{clock: c, logger: opts.Logger},
	}
	s.leases = lease.NewWheel(s.nodes.ofLease)
	s.contact.cluster, _ = rdb.(*redis.ClusterClient)
	s.nodes.notify = s.observers.notify
	s.nodes.follow(rdb, calls)
	s.contact.found = s.nodes.found
	if opts.Queue == Queued {
		s.nodes.batches(rdb)
	}
	return s
}

var errStore = fmt.Errorf("%w: rdb is a nil or zero Store: make one with store.Open, and check its error first", script.ErrClient)

// Open makes a store from a go-redis client. Each call makes another store, even from the
// same client. If rdb is a Store, Open uses the client of that store and none of its
// options. Nil opts mean the zero Options. Open sends nothing to Redis.
//
// The error joins every fault, each with its field and the remedy. It matches
// [script.ErrClient] if the client cannot be used.
func Open(rdb script.Client, opts *Options) (*Store, error) {
	own, err := opts.withDefaults()
	if st, is := rdb.(*Store); is && st.made() {
		rdb = st.client
	}
	calls, fault := clientOf(rdb)
	if err := errors.Join(fault, err); err != nil {
		return nil, fmt.Errorf("store.Open: %w", err)
	}
	return newStore(rdb, calls, own), nil
}

// clientOf returns how calls are sent to rdb, or why no store can be made from it.
func clientOf(rdb script.Client) (*call.Client, error) {
	switch _, err := inside.Of(rdb); {
	case err == nil:
		return nil, errStore
	case !errors.Is(err, inside.ErrNone):
		return nil, err
	}
	return call.NewClient(rdb)
}

// Process sends a command as the client does, without budget, breaker or queue. It makes
// a Store a [script.Client], so that a constructor accepts either.
func (s *Store) Process(ctx context.Context, cmd redis.Cmder) error {
	if !s.made() {
		return errStore
	}
	return s.client.Process(ctx, cmd)
}

// Client returns the client that the store was opened with, or nil for a nil or zero
// store.
func (s *Store) Client() script.Client {
	if s == nil {
		return nil
	}
	return s.client
}

func (s *Store) made() bool { return s != nil && s.client != nil }

// Diagnose connects to Redis, or to the first address of a cluster, on a connection of
// its own. It reports why the server cannot be asked: for example a refused port, an
// unknown CA, or a server that wants TLS. It returns nil if the server answers, even if
// the answer refuses the password. It also returns nil if the client does not say how it
// connects. It takes up to 5 s. Callers that ask at the same time share one connection.
//
// During an outage a store does so once for each server, and adds what it finds to the
// errors of calls.
func (s *Store) Diagnose(ctx context.Context) error {
	misuse.Context(ctx)
	if !s.made() {
		return errStore
	}
	return s.nodes.dialer.diagnose(ctx)
}
