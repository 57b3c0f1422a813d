package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/keyspace"
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

func newStore(rdb script.Client, opts Options) *Store {
	c := clock{time.Now()}
	s := &Store{
		client: rdb, opts: opts,
		contact: contact{clock: c, most: opts.FirstContact}, nodes: nodes{clock: c, logger: opts.Logger},
	}
	s.leases = lease.NewWheel(s.nodes.ofLease)
	s.contact.cluster, _ = rdb.(*redis.ClusterClient)
	s.nodes.notify = s.observers.notify
	for _, o := range opts.Observers {
		s.Observe(o)
	}
	s.nodes.follow(rdb)
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
	if inside, is := rdb.(*Store); is && inside.made() {
		rdb = inside.client
	}
	if err := errors.Join(check(rdb), err); err != nil {
		return nil, fmt.Errorf("store.Open: %w", err)
	}
	return newStore(rdb, own), nil
}

// check returns why no store can be made from rdb.
func check(rdb script.Client) error {
	switch rdb.(type) {
	case *Store:
		return errStore
	case script.Sender: // it would hide its options, and whether it is a Ring
		return fmt.Errorf("%w: rdb is a %T, which stands before a store: pass the store itself", script.ErrClient, rdb)
	}
	_, err := script.NewRunner(rdb, nil)
	return err
}

// Process sends a command as the client does. It makes a Store a [script.Client], so that
// a constructor accepts either.
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

// Space makes the keys of one limiter, locker, guard or stock. The library's own packages
// use it. The error is about the name. A nil or zero store has the default prefix and no
// secret.
func (s *Store) Space(kind, name string) (keyspace.Space, error) {
	if !s.made() {
		return keyspace.New(kind, name, DefaultPrefix, nil)
	}
	space, err := keyspace.New(kind, name, s.opts.Prefix, s.opts.SubjectSecret)
	if s.opts.StoredSubjects {
		space = space.Stored()
	}
	return space, err
}

// ParseKey parses a key that a limiter, locker, guard or stock on the store has made. ok
// is false if it is not such a key. The parts are the kind (such as limit), the name, the
// subject as Redis has it, and what follows. ParseKey sends nothing. It is for operators'
// tools.
func (s *Store) ParseKey(key string) (parts keyspace.Parts, ok bool) {
	if !s.made() {
		return keyspace.Parse(DefaultPrefix, key)
	}
	return keyspace.Parse(s.opts.Prefix, key)
}

// Leases returns the wheel that renews what is held on the store. The library's own packages
// use it.
func (s *Store) Leases() *lease.Wheel {
	if s == nil {
		return nil
	}
	return s.leases
}

// Budget returns Options.Budget, or otherwise if that is 0 or the store is nil or zero.
func (s *Store) Budget(otherwise time.Duration) time.Duration {
	if s == nil || s.opts.Budget == 0 {
		return otherwise
	}
	return s.opts.Budget
}

// Send makes a call of a [script.Runner]. If the breaker of its server and budget is
// open, it returns [script.ErrNotExecuted] at once, unless the script is essential. The
// library uses it: it makes a Store a [script.Sender].
func (s *Store) Send(ctx context.Context, call *script.Call) error {
	if !s.made() {
		return &script.Error{Class: script.ErrConfiguration, Err: errStore}
	}
	b := s.nodes.breaker(ctx, call.Key(), call.Budget())
	err := b.send(ctx, call, s.contact.budget(b.node, call.Budget()))
	if err == nil {
		s.nodes.found()
		return nil
	}
	b.node.refused(err)
	return err
}

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

// BreakerOpen reports whether calls with that budget are held back now because Redis, or
// one of its servers, did not answer. A server without a call for a minute does not
// count, because it may have left the cluster.
func (s *Store) BreakerOpen(budget time.Duration) bool {
	return s.made() && s.nodes.open(budget)
}

// Node returns the address of the server that has a key. It returns "" if the client has
// only one server, or has had no answer yet. It sends nothing.
func (s *Store) Node(ctx context.Context, key string) string {
	if !s.made() {
		return ""
	}
	_, address := s.nodes.server(ctx, key)
	return address
}
