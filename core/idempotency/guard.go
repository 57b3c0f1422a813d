package idempotency

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/internal/inside"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/core/internal/misuse"
	"github.com/neap-go/neap/core/internal/options"
	"github.com/neap-go/neap/core/internal/ring"
	"github.com/neap-go/neap/core/internal/undo"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

// Guard runs the work behind a key once. It is immutable and safe for concurrent use, and
// needs no Close. The zero Guard is not usable.
type Guard struct {
	*shared
	wait time.Duration
	fail FailMode
}

// shared is what a Guard shares with those that WithWait and WithFail make of it.
type shared struct {
	name   string
	policy Policy
	opts   Options
	keep   any // how long Redis keeps the record of a run that was begun, in milliseconds; converted to any once
	begins any // the lease, keep and policy of a run, as the script wants them
	every  any // the same for BeginAny, which every record matches
	space  keyspace.Space
	store  *store.Store
	asker  ask.Asker
	terms  lease.Terms
	bare   lease.Terms // of claims that are not in Redis
	seals  *seals
	watch  watchers
	undo   undo.Undoer // takes back claims that no caller got
	late   undo.Undoer // repeats conclusions that Redis did not confirm
	count  counters
}

// New makes a Guard. It sends nothing.
//
// The name has 1 to 64 letters, digits, dots, dashes and underscores, and sets the keys
// of this Guard apart from others. Guards with the same name and prefix share their
// records, in one process or in many. The policy is required. It says what to do about
// work that was begun and not concluded. Nil opts mean the zero Options.
//
// New refuses a Ring, and a struct that embeds one. Each client of a Ring chooses a
// server among those that it can reach, so two clients could run the work behind one key.
// The error joins all faults, each with its field and the remedy.
func New(rdb script.Client, name string, policy Policy, opts *Options) (*Guard, error) {
	st, unusable := store.Of(rdb)
	in, _ := inside.Of(st)
	own, err := opts.withDefaults(in)
	space, fault := in.Space("guard", name)
	seals, unsealed := newSeals(own.EncryptionKeys)
	if ring.Is(st.Client()) {
		unusable = errRing
	}
	if err := errors.Join(unusable, fault, checkPolicy(policy), err, unsealed); err != nil {
		return nil, fmt.Errorf("idempotency.New: %w", err)
	}
	keep := own.Retention
	if !retries(policy) {
		keep = own.DoubtRetention
	}
	begins := strings.Join([]string{milliseconds(own.Lease), milliseconds(keep), policy.word()}, " ")
	s := &shared{
		name: name, policy: policy, opts: own, space: space, store: st, seals: seals,
		keep:   milliseconds(keep),
		begins: begins,
		every:  begins + " any",
		asker:  ask.Asker{Runner: ask.Runner{Inside: in, Budget: own.Budget}},
		terms:  lease.Terms{Wheel: in.Leases(), Lease: own.Lease, Expired: ErrExpired},
		bare:   bareTerms(in.Leases()),
		undo:   undo.Undoer{Total: in.Pending()},
		late:   undo.Undoer{Room: concluding, Total: in.Pending()},
	}
	store.Register(st, s, (*shared).gauge, nil)
	return &Guard{shared: s, wait: own.Wait}, nil
}

// WithWait returns a Guard that shares everything with g, except that its Await and Do
// wait for the given duration instead of Options.Wait. The duration is a millisecond to
// 24 h; WithWait returns an error for any other.
func (g *Guard) WithWait(wait time.Duration) (*Guard, error) {
	if !g.made() {
		return nil, errGuard
	}
	if wait < time.Millisecond || wait > options.MaxLease {
		return nil, fmt.Errorf("idempotency.WithWait: the wait is %v: use %v to %v", wait, time.Millisecond, options.MaxLease)
	}
	return &Guard{shared: g.shared, wait: wait, fail: g.fail}, nil
}

// concluding is how many conclusions are repeated at a time. It is small because each of
// them holds a result, which may be long.
const concluding = 1000

// Name returns the name that was given to New.
func (g *Guard) Name() string {
	misuse.Made(g.made(), errGuard)
	return g.name
}

func (g *Guard) made() bool { return g != nil && g.shared != nil }

// record returns the name of a key's record in Redis.
func (g *Guard) record(key string) (string, error) {
	switch {
	case !g.made():
		return "", errGuard
	case key == "":
		return "", ErrKey
	}
	return g.space.Key(key, ""), nil
}

// Do runs fn and returns its result. If fn was done before under this key, Do returns the
// result that fn returned then. If another caller is running it, Do waits as Await does.
//
// The context of fn ends when the claim is lost. FromContext finds the claim in it, with
// its fence and attempt. If fn finds that it has nothing to do yet, it concludes the claim
// with [NothingDone].
//
// If fn returns an error or panics, the guard's [Policy] says what happens next. With Retry
// the work runs again; otherwise it is in doubt. A panic propagates.
//
// Do returns Await's error if fn did not run. Otherwise it returns fn's error as it is,
// joined with the error of [Claim.Conclude]. So if fn asks another guard, what looks like
// the error of this one may be that of the other. If only Conclude failed, Do also returns
// fn's result.
//
// Do costs two round trips if fn runs, one if it was done before, and another for each
// third of the lease that fn takes.
func (g *Guard) Do(ctx context.Context, key string, fn func(ctx context.Context) ([]byte, error)) (result []byte, err error) {
	if fn == nil {
		return nil, errFn
	}
	answer, err := g.Await(ctx, key, "")
	if answer.Claim == nil {
		return answer.Result, err
	}
	outcome := Unknown()
	defer func() { err = errors.Join(err, answer.Claim.Conclude(ctx, outcome)) }()
	result, err = fn(answer.Claim.Context())
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

// Policy returns the policy that was given to New. Use a type switch to see which one it
// is: to compare two policies by == panics if both are a Reconcile.
func (g *Guard) Policy() Policy {
	misuse.Made(g.made(), errGuard)
	return g.policy
}
