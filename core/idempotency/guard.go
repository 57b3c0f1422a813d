package idempotency

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/ring"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// Guard runs the work behind a key once. It is immutable and safe for
// concurrent use, and needs no Close. The zero Guard is not usable.
type Guard struct {
	*shared
	wait time.Duration
}

// shared is what a Guard and those made by WithWait have in common.
type shared struct {
	name   string
	opts   Options
	keep   any // in milliseconds, the record of a run that was begun; boxed once, so that a call does not
	begins any // the terms on which a run is begun
	space  keyspace.Space
	store  *store.Store
	asker  ask.Asker
	terms  lease.Terms
	seals  *seals
	watch  watchers
	undo   undo.Undoer // of claims that no caller got
	late   undo.Undoer // of conclusions that Redis did not confirm
	count  counters
}

// New makes a Guard. The name, 1 to 64 letters, digits, dots, dashes and
// underscores, sets its keys apart from those of others; Guards of one name and
// prefix share their records, in one process or in many. Nil opts are the zero
// Options. It sends nothing.
//
// New refuses a Ring, or a struct that embeds one: each client of a Ring chooses a server
// among those that it can reach, so two clients can run one key. The error joins every
// fault, each with its field and the remedy.
func New(rdb script.Client, name string, opts *Options) (*Guard, error) {
	st, unusable := store.Of(rdb)
	own, err := opts.withDefaults(st)
	space, fault := st.Space("guard", name)
	seals, unsealed := newSeals(own.Keys)
	if ring.Is(st.Client()) {
		unusable = errRing
	}
	if err := errors.Join(unusable, fault, err, unsealed); err != nil {
		return nil, fmt.Errorf("idempotency.New: %w", err)
	}
	run, err := script.NewRunner(st, &script.Options{Budget: own.Budget})
	if err != nil {
		return nil, fmt.Errorf("idempotency.New: %w", err)
	}
	keep := own.Retention
	if own.InDoubt != Retry {
		keep = own.DoubtRetention
	}
	s := &shared{
		name: name, opts: own, space: space, store: st, seals: seals,
		keep:   milliseconds(keep),
		begins: strings.Join([]string{milliseconds(own.Lease), milliseconds(keep), policies[own.InDoubt]}, " "),
		asker:  ask.Asker{Runner: run, Budget: own.Budget},
		terms:  lease.Terms{Lease: own.Lease, Expired: ErrExpired},
		undo:   undo.Undoer{Total: st.Pending()},
		late:   undo.Undoer{Room: concluding, Total: st.Pending()},
	}
	store.Register(st, s, (*shared).gauge)
	return &Guard{shared: s, wait: own.Wait}, nil
}

// WithWait returns a Guard that shares everything with g, but whose Await and Do wait
// for the given duration instead of Options.Wait: a millisecond to 24 h.
func (g *Guard) WithWait(wait time.Duration) (*Guard, error) {
	if !g.made() {
		return nil, errGuard
	}
	if wait < time.Millisecond || wait > MaxLease {
		return nil, fmt.Errorf("idempotency.WithWait: the wait is %v: use %v to %v", wait, time.Millisecond, MaxLease)
	}
	return &Guard{shared: g.shared, wait: wait}, nil
}

// concluding is how many conclusions are repeated at a time: each of them holds a
// result, which may be long.
const concluding = 1000

// Name is the name that was given to New.
func (g *Guard) Name() string {
	misuse.Made(g.made(), errGuard)
	return g.name
}

func (g *Guard) made() bool { return g != nil && g.shared != nil }

// record is what a key is in Redis.
func (g *Guard) record(key string) (string, error) {
	switch {
	case !g.made():
		return "", errGuard
	case key == "":
		return "", ErrKey
	}
	return g.space.Key(key, ""), nil
}

// Do runs fn and returns its result. If fn was done before under this key, Do returns
// the result that fn returned then. If another caller runs it now, Do waits as Await
// does. The context of fn ends when the claim is lost; FromContext finds the claim in
// it, with its fence and attempt. A fn that has nothing to do for now calls
// Claim.Abandon.
//
// Options.InDoubt says what comes next if fn returns an error or panics: with Retry it
// runs again, otherwise it is in doubt.
//
// Do returns Await's error if fn did not run. Otherwise it returns fn's error, joined
// with that of [Claim.Conclude]; if only the latter failed, the result is fn's.
//
// It costs two round trips if fn runs, one if it was done before, and another for each
// third of the lease that fn takes.
func (g *Guard) Do(ctx context.Context, key string, fn func(ctx context.Context) ([]byte, error)) (result []byte, err error) {
	if fn == nil {
		return nil, errFn
	}
	run, err := g.Await(ctx, key, "")
	if run.Claim == nil {
		return run.Result, err
	}
	outcome := Unknown()
	defer func() { err = errors.Join(err, run.Claim.Conclude(ctx, outcome)) }()
	result, err = fn(run.Claim.Context())
	if err == nil {
		outcome = DoneWith(result)
	}
	return result, err
}

// Retention returns how long the guard remembers a result.
func (g *Guard) Retention() time.Duration {
	misuse.Made(g.made(), errGuard)
	return g.opts.Retention
}

// InDoubt returns what the guard does if it is not known how far an earlier run came.
func (g *Guard) InDoubt() InDoubt {
	misuse.Made(g.made(), errGuard)
	return g.opts.InDoubt
}
