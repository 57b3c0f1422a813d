package idempotency

import (
	"errors"
	"fmt"

	"github.com/neap-go/neap/core/script"
)

// Why a key is not this caller's to run. A call that Redis could not answer
// fails with a [*script.Error] instead.
var (
	// ErrInFlight: another call runs it now.
	ErrInFlight = errors.New("idempotency: in flight")
	// ErrMismatch: the key was used for something with another fingerprint.
	ErrMismatch = errors.New("idempotency: the key was used for something else")
	// ErrInDoubt: it was begun, and whether it was done is not known.
	ErrInDoubt = errors.New("idempotency: in doubt")
	// ErrNoResult: it was done, and its result was not kept.
	ErrNoResult = errors.New("idempotency: done, and there is no result to give")
	// ErrUnreadable: it was done, and its result cannot be read: its key is gone, or it
	// was changed.
	ErrUnreadable = errors.New("idempotency: done, and its result cannot be read")
)

// What became of a claim.
var (
	// ErrLost: another has taken over, or the record is gone.
	ErrLost = errors.New("idempotency: the claim is lost")
	// ErrExpired is an [ErrLost] that this process finds out by itself: Redis
	// did not confirm the claim for a lease, or the process slept.
	ErrExpired = fmt.Errorf("%w: its lease is over", ErrLost)
	// ErrConcluded: its own holder has ended it.
	ErrConcluded = errors.New("idempotency: the claim is concluded")
)

// What a call was given that it cannot use, or an operator wants of a key.
var (
	// ErrKey: the key is empty.
	ErrKey = errors.New("idempotency: the key is empty: say what is to run once")
	// ErrFingerprint: the fingerprint cannot stand in the record.
	ErrFingerprint = errors.New(`idempotency: the fingerprint is out of range: use up to 128 printable ASCII characters without spaces, "" for none`)
	// ErrUnresolved: Resolve was told Unknown.
	ErrUnresolved = errors.New("idempotency: say what became of it: NothingDone, DoneWith or DoneWithout")
	// ErrNotInDoubt: there is nothing to resolve.
	ErrNotInDoubt = errors.New("idempotency: not in doubt")
)

// What the program has to mend.
var (
	errGuard = errors.New("idempotency: a nil or zero Guard: make one with New, and check its error first")
	errClaim = errors.New("idempotency: a nil or zero Claim: Begin and Await return one only where there is something to run")
	errFn    = errors.New("idempotency: fn is nil: say what to run")
)

var errRing = fmt.Errorf("%w: rdb is a Ring, whose clients can disagree about which server has a record, and then it runs twice: "+
	"use a Client, a failover Client or a ClusterClient", script.ErrClient)
