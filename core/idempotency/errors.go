package idempotency

import (
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/script"
)

// These errors say why the work behind a key is not this caller's to do. If Redis could
// not answer, the error is a [*script.Error] instead.
var (
	// ErrInFlight says that another caller is doing the work.
	ErrInFlight = errors.New("idempotency: in flight")
	// ErrMismatch says that the key was used with another fingerprint.
	ErrMismatch = errors.New("idempotency: the key was used for something else")
	// ErrInDoubt says that the work was begun, and that it is not known whether it was
	// done.
	ErrInDoubt = errors.New("idempotency: in doubt")
	// ErrNoResult says that the work was done, and that its result was not kept.
	ErrNoResult = errors.New("idempotency: done, but its result was not kept")
	// ErrUnreadable says that the work was done, and that its result cannot be read: the
	// encryption key is gone, or the result was changed.
	ErrUnreadable = errors.New("idempotency: done, but its result cannot be read")
)

// These errors say what became of a claim.
var (
	// ErrLost says that another caller has taken over, or that the record is gone.
	ErrLost = errors.New("idempotency: the claim is lost")
	// ErrExpired says that the lease was over: Redis did not confirm the claim for a
	// lease, or the process slept. This process finds that out by itself. It wraps
	// [ErrLost].
	ErrExpired = fmt.Errorf("%w: its lease is over", ErrLost)
	// ErrConcluded says that the holder has concluded the claim. When Redis has noted its
	// doubt, the error of [Claim.Err] is [ErrInDoubt] too.
	ErrConcluded = errors.New("idempotency: the claim is concluded")
	// ErrDropped says that a conclusion was given up in the background, as Stats.Dropped
	// counts. OnError of gate.Idempotent and of core/callback is told of it.
	ErrDropped = errors.New("idempotency: Redis did not confirm the conclusion, and it is not repeated any more: Inspect the key")

	errDoubted = fmt.Errorf("%w, and the work is: %w", ErrConcluded, ErrInDoubt)
)

// These errors report an argument that cannot be used, or that there is nothing to
// resolve.
var (
	// ErrKey says that the key is empty.
	ErrKey = errors.New("idempotency: the key is empty: say what is to run once")
	// ErrFingerprint says that the fingerprint is too long or "-", or has characters that
	// cannot stand in the record.
	ErrFingerprint = errors.New(`idempotency: the fingerprint is out of range: use up to 128 printable ASCII characters without spaces, "" for none`)
	// ErrUnresolved says that Resolve was called with Unknown.
	ErrUnresolved = errors.New("idempotency: say what became of it: NothingDone, DoneWith or DoneWithout")
	// ErrNotInDoubt says that there is nothing to resolve.
	ErrNotInDoubt = errors.New("idempotency: not in doubt")
)

// These errors report a bug in the calling program.
var (
	errGuard = errors.New("idempotency: a nil or zero Guard: make one with New, and check its error first")
	errClaim = errors.New("idempotency: a nil or zero Claim: Begin and Await return one only if there is work to do")
	errFn    = errors.New("idempotency: fn is nil: say what to run")
)

var errRing = fmt.Errorf("%w: rdb is a Ring, whose clients can disagree about which server has a record, and then it runs twice: "+
	"use a Client, a failover Client or a ClusterClient", script.ErrClient)
