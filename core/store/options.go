package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// DefaultPrefix begins every key if Options.Prefix is empty: it is "neap".
const DefaultPrefix = keyspace.DefaultPrefix

// The ranges of the options.
const (
	minBudget = time.Millisecond
	maxBudget = time.Hour

	maxContact = time.Minute
)

// QueueMode says how a store sends calls. The zero value means DefaultQueue.
type QueueMode int

// The modes.
const (
	// Direct sends each call by itself, on a connection of the client's pool.
	Direct QueueMode = iota + 1
	// Queued sends the calls of many callers together, by the pipelines of a *redis.Client, *ClusterClient or
	// *Ring; with another client it is Direct. A call goes by itself if its caller is alone, or if its
	// script is not [script.Script.Batched]. Up to 10,000 calls wait for a server; a further one is tried again
	// within its budget, and then fails with [script.ErrNotExecuted]. If goroutines of the process wait longer
	// than 5 ms for a processor, a call without an answer may take up to a second longer than its budget: its
	// answer may have arrived and not been read.
	Queued
)

// Options are a store's options. The zero value is ready to use; Open copies it.
type Options struct {
	// Prefix begins every key, of up to 64 printable ASCII characters; empty
	// means DefaultPrefix. Spaces and braces are refused.
	Prefix string
	// SubjectSecret, if set, keeps subjects out of Redis: each key, owner, item and
	// buyer stands there as its HMAC-SHA-256 under this secret of at least 16 bytes.
	// Another secret means other keys, so all state starts afresh.
	SubjectSecret []byte
	// StoredSubjects is for tools of operators: a subject, an owner or an item that is a hash as Redis
	// has it (# and 43 letters, digits, dashes or underscores) stands for whoever has that hash, also without the secret. Do not
	// set it where a request says what its subject is: it could say another's hash.
	StoredSubjects bool
	// Budget is the most time that one call takes, for whatever has no Budget of
	// its own, and whatever the client's timeouts are. It is from a millisecond to an
	// hour; 0 means limit.DefaultBudget (50 ms) for limits and script.DefaultBudget
	// (250 ms) for everything else. With the queue a call may take longer while the process is short of CPU.
	Budget time.Duration
	// FirstContact is the time that calls have, from the first call of the store on, until a
	// server has answered once: to connect may take longer than a Budget. Later calls have
	// their Budget, and a caller's own deadline always counts. So a Redis that is away
	// when a process starts costs this time once. It is up to a minute; 0 means
	// DefaultFirstContact, and less than a Budget changes nothing.
	FirstContact time.Duration
	// Queue says how calls are sent; 0 means DefaultQueue.
	Queue QueueMode
	// Logger is told once that a server does not answer, and once that it does again, for
	// each server and outage: its address, the class of the error, how many calls had no
	// answer or were held back, and for how long; never a key. If the client does not tell
	// its servers, the address is the client's Go type. Nil means slog.Default, as it is then.
	//
	// A server is lost if one of its breakers opens, or if a call has no answer and none was
	// answered for a second. It is back with an answer after a second without a failure,
	// when all its breakers are closed, or those that are open had no call for a minute. A lost
	// server that is not asked for a minute is forgotten, and its outage ends.
	Logger *slog.Logger

	// Observers receive the events of everything on the store; see [Observer]. Nil ones
	// are left out. Observe adds more of them later.
	Observers []Observer
}

// withDefaults is a checked copy of the options.
func (o *Options) withDefaults() (Options, error) {
	var own Options
	if o != nil {
		own = *o
		own.SubjectSecret = bytes.Clone(o.SubjectSecret)
	}
	own.Prefix = cmp.Or(own.Prefix, DefaultPrefix)
	own.FirstContact = cmp.Or(own.FirstContact, DefaultFirstContact)
	own.Queue = cmp.Or(own.Queue, DefaultQueue)
	return own, errors.Join(
		keyspace.CheckPrefix(own.Prefix),
		keyspace.CheckSecret(own.SubjectSecret),
		checkBudget(own.Budget),
		checkContact(own.FirstContact),
		checkQueue(own.Queue),
	)
}

func checkQueue(m QueueMode) error {
	if m == Direct || m == Queued {
		return nil
	}
	return fmt.Errorf("Queue is %d: use Direct, Queued, or 0 for DefaultQueue", m)
}

func checkContact(d time.Duration) error {
	if d >= 0 && d <= maxContact {
		return nil
	}
	return fmt.Errorf("FirstContact is %v: use up to %v, or 0 for %v", d, maxContact, DefaultFirstContact)
}

func checkBudget(d time.Duration) error {
	if d == 0 || d >= minBudget && d <= maxBudget {
		return nil
	}
	return fmt.Errorf("Budget is %v: use %v to %v, or 0 for the default of each primitive", d, minBudget, maxBudget)
}
