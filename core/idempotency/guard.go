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

// Guard has what a key stands for run once. It is immutable and safe for
// concurrent use, and needs no Close. The zero Guard is not usable.
type Guard struct {
	name   string
	opts   Options
	keep   any // in milliseconds, the record of a run that was begun; boxed once, so that a call does not
	begins any // the terms on which a run is begun
	space  keyspace.Space
	store  *store.Store
	asker  ask.Asker
	terms  lease.Terms
	seals  *seals
	watch  watch
	undo   undo.Undoer // of runs that nobody was told to begin
	late   undo.Undoer // of conclusions that Redis did not confirm
	count  counters
}

// New makes a Guard. The name, 1 to 64 letters, digits, dots, dashes and
// underscores, sets its keys apart from those of others; Guards of one name and
// prefix share their records, in one process or in many. Nil opts are the zero
// Options. It sends nothing.
//
// A Ring, or a struct that embeds one, is refused: its clients choose a server
// by which of them they can reach, each for itself, and so a key can run on each
// side. The error joins every fault, each with its field and the remedy.
func New(rdb script.Client, name string, opts *Options) (*Guard, error) {
	st, unusable := store.Of(rdb)
	own, err := opts.settled(st)
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
	return &Guard{
		name: name, opts: own, space: space, store: st, seals: seals,
		keep:   milliseconds(keep),
		begins: strings.Join([]string{milliseconds(own.Lease), milliseconds(keep), policies[own.InDoubt]}, " "),
		asker:  ask.Asker{Runner: run, Budget: own.Budget},
		terms:  lease.Terms{TTL: own.Lease, Expired: ErrExpired},
		undo:   undo.Undoer{Total: st.Pending()},
		late:   undo.Undoer{Room: concluding, Total: st.Pending()},
	}, nil
}

// concluding is how many conclusions are repeated at a time: each of them holds a
// result, which may be long.
const concluding = 1000

// Name is the name that was given to New.
func (g *Guard) Name() string {
	misuse.Made(g.made(), errGuard)
	return g.name
}

func (g *Guard) made() bool { return g != nil && g.store != nil }

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

// Do runs fn unless it has been done under this key, and returns its result, or
// what fn returned when it was done. It waits as Await does for another that is
// at it. The context of fn ends when the claim is lost; FromContext finds the
// claim in it, with its fence and attempt. A fn that finds that it has to do
// nothing for now calls Claim.Abandon.
//
// When fn returns an error or panics, what comes next is up to Options.InDoubt:
// with Retry it runs again, otherwise it is in doubt. The error is that of Await,
// in which case fn did not run, or that of fn, joined with that of
// [Claim.Conclude]; when only the latter failed, the result is fn's.
//
// It costs two round trips when fn runs, one when it was done, and another for
// each third of the lease that fn takes.
func (g *Guard) Do(ctx context.Context, key string, fn func(ctx context.Context) ([]byte, error)) (result []byte, err error) {
	if fn == nil {
		return nil, errFn
	}
	c, result, err := g.Await(ctx, key, "")
	if c == nil {
		return result, err
	}
	outcome := Unknown()
	defer func() { err = errors.Join(err, c.Conclude(ctx, outcome)) }()
	result, err = fn(c.Context())
	if err == nil {
		outcome = DoneWith(result)
	}
	return result, err
}

// Retention is for how long the guard remembers a result.
func (g *Guard) Retention() time.Duration {
	misuse.Made(g.made(), errGuard)
	return g.opts.Retention
}

// InDoubt is what the guard does about a run of which nobody knows how far it
// came.
func (g *Guard) InDoubt() InDoubt {
	misuse.Made(g.made(), errGuard)
	return g.opts.InDoubt
}
