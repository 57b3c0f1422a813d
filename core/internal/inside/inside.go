// Package inside is what the library's own packages use of a store and of a limiter, and their
// users do not.
package inside

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/neap-go/neap/core/internal/call"
	"github.com/neap-go/neap/core/internal/keyspace"
	"github.com/neap-go/neap/core/internal/lease"
)

// Store is the inside of a store.Store. Its one implementation is within, in
// core/store/inside.go.
type Store interface {
	// Send makes a call within that budget, or within Options.FirstContact. If the breaker
	// of its server and budget is open, it fails at once, unless the script is essential.
	Send(ctx context.Context, c *call.Call, budget time.Duration) error
	// Budget returns Options.Budget, or otherwise if that is 0.
	Budget(otherwise time.Duration) time.Duration
	// Client returns the client of the store.
	Client() call.Processor
	// IsOpen reports whether calls with that budget are held back now.
	IsOpen(budget time.Duration) bool
	// Node returns the address of the server that has a key. It returns "" if the client
	// has only one server, or has had no answer yet. It sends nothing.
	Node(ctx context.Context, key string) string
	// Space makes the keys of one limiter, locker, guard or stock. The error is about the
	// name.
	Space(kind, name string) (keyspace.Space, error)
	// Pending counts the background tasks for which Drain waits.
	Pending() *atomic.Int64
	// Leases returns the wheel that renews what is held on the store.
	Leases() *lease.Wheel
}

// ErrNone reports that a client is no store.
var ErrNone = errors.New("the client is no store")

// Of returns the inside of a client that is a store. If it is none, the error is [ErrNone].
// For a nil or zero *store.Store, Of returns an error, and a Store that knows only the
// defaults: call nothing but its Budget, Space, Pending and Leases. Package store sets Of,
// because package script needs it and cannot import package store.
var Of = func(call.Processor) (Store, error) { return nil, ErrNone }
