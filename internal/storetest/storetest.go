// Package storetest opens stores for tests.
package storetest

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// At is a store of the client whose keys begin with the prefix.
func At(tb testing.TB, rdb script.Client, prefix string) *store.Store {
	tb.Helper()
	return Open(tb, rdb, store.Options{Prefix: prefix})
}

// Direct is At with each call sent by itself.
func Direct(tb testing.TB, rdb script.Client, prefix string) *store.Store {
	tb.Helper()
	return Open(tb, rdb, store.Options{Prefix: prefix, Queue: store.Direct})
}

// Open is store.Open for options that are right.
func Open(tb testing.TB, rdb script.Client, opts store.Options) *store.Store {
	tb.Helper()
	st, err := store.Open(rdb, &opts)
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

// Child is At for a child process of a test, as redistest.ChildClient is.
func Child(addr, prefix string) *store.Store {
	st, err := store.Open(redistest.ChildClient(addr), &store.Options{Prefix: prefix})
	if err != nil {
		panic(err)
	}
	return st
}

// Embedded is a store of redistest.Embedded whose calls have a minute, for examples in the
// documentation: a busy machine must not decide what they print.
func Embedded() *store.Store {
	st, err := store.Open(redistest.Embedded(), &store.Options{Budget: time.Minute})
	if err != nil {
		panic(err)
	}
	return st
}
