package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/script"
)

// Store is one Redis with the options that everything on it shares. It is immutable, safe
// for concurrent use and needs no Close. The zero Store is not usable.
type Store struct {
	client    script.Client
	opts      Options
	contact   contact
	nodes     nodes
	pending   atomic.Int64
	observers observers
	gauges    gauges
}

func newStore(rdb script.Client, opts Options) *Store {
	c := clock{time.Now()}
	s := &Store{
		client: rdb, opts: opts,
		contact: contact{clock: c, most: opts.FirstContact}, nodes: nodes{clock: c, logger: opts.Logger},
	}
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

// Open makes a store of a go-redis client: each call makes another, even of the same
// client. If rdb is a Store, Open uses the client of that store and none of its options. Nil
// opts are the zero Options. It sends nothing.
//
// The error joins every fault, each with its field and the remedy, and matches
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

// check refuses what no store can be made of.
func check(rdb script.Client) error {
	switch rdb.(type) {
	case *Store:
		return errStore
	case script.Sender: // which would hide its options, and whether it is a Ring
		return fmt.Errorf("%w: rdb is a %T, which stands before a store: pass the store itself", script.ErrClient, rdb)
	}
	_, err := script.NewRunner(rdb, nil)
	return err
}

// Process sends a command as the client does. It makes a Store a [script.Client],
// so that a constructor takes either.
func (s *Store) Process(ctx context.Context, cmd redis.Cmder) error {
	if !s.made() {
		return errStore
	}
	return s.client.Process(ctx, cmd)
}

// Client is the client that the store was opened with; a nil or zero store has none.
func (s *Store) Client() script.Client {
	if s == nil {
		return nil
	}
	return s.client
}

func (s *Store) made() bool { return s != nil && s.client != nil }

// Space makes the keys of one limiter, locker, guard or stock; the library's own
// packages use it. The error is about the name. A nil or zero store has the default
// prefix and no secret.
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

// ParseKey reads a key that something on the store has made, and says whether it is one. The
// parts are its kind (such as limit), the name, the subject as Redis has it, and what stands
// behind. It sends nothing, and is for tools of operators.
func (s *Store) ParseKey(key string) (parts keyspace.Parts, ok bool) {
	if !s.made() {
		return keyspace.Parse(DefaultPrefix, key)
	}
	return keyspace.Parse(s.opts.Prefix, key)
}

// Budget is Options.Budget, or otherwise if that is 0 or the store is nil or zero.
func (s *Store) Budget(otherwise time.Duration) time.Duration {
	if s == nil || s.opts.Budget == 0 {
		return otherwise
	}
	return s.opts.Budget
}

// Send makes a call of a [script.Runner], unless the breaker of its node and budget is
// open: then the error is a [script.ErrNotExecuted], at once, but for essential
// scripts. It is the library's own, as a [script.Sender].
func (s *Store) Send(ctx context.Context, call *script.Call) error {
	if !s.made() {
		return &script.Error{Class: script.ErrConfiguration, Err: errStore}
	}
	b := s.nodes.breaker(ctx, call.Key(), call.Budget())
	err := b.send(ctx, call, s.contact.budget(b.node, call.Budget()))
	if err == nil {
		s.nodes.found()
	}
	return err
}

// Diagnose connects to Redis, or to the first address of a cluster, by a connection of
// its own, and reports why that cannot be asked: a refused port, an unknown CA, a server
// that wants TLS. It returns nil if the server answers, though it may refuse the
// password, or if the client does not say how it connects. It takes up to 5 s. Callers that
// ask at the same time share one connection.
//
// During an outage a store does so once for each server, and the errors of calls say it.
func (s *Store) Diagnose(ctx context.Context) error {
	misuse.Context(ctx)
	if !s.made() {
		return errStore
	}
	return s.nodes.dialer.diagnose(ctx)
}

// BreakerOpen reports whether calls of that budget are held back now because Redis,
// or a node of it, did not answer. A node without a call for a minute does not count: it
// may have left the cluster.
func (s *Store) BreakerOpen(budget time.Duration) bool {
	return s.made() && s.nodes.open(budget)
}

// Node is the address of the server that has a key, and empty if the client has one
// server or has had no answer yet. It sends nothing.
func (s *Store) Node(ctx context.Context, key string) string {
	if !s.made() {
		return ""
	}
	_, address := s.nodes.server(ctx, key)
	return address
}
