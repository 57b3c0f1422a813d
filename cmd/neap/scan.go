package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/store"
)

// scanned is about how many keys one SCAN looks at.
const scanned = 1000

// scan walks by SCAN over the keys of a server that begin with begin, until it has looked at about most keys. It says
// how many it looked at, matching or not, and whether these were all.
func (a *app) scan(ctx context.Context, rdb *redis.Client, begin string, most int, found func(keys []string) error) (looked int, all bool, err error) {
	for cursor := uint64(0); looked < most; {
		within, cancel := a.within(ctx)
		keys, next, err := rdb.Scan(within, cursor, globbed(begin)+"*", scanned).Result()
		cancel()
		if err != nil {
			return looked, false, err
		}
		looked += scanned
		if err := found(keys); err != nil {
			return looked, false, err
		}
		if cursor = next; cursor == 0 {
			within, cancel := a.within(ctx)
			defer cancel()
			if size, err := rdb.DBSize(within).Result(); err == nil {
				looked = int(size)
			}
			return looked, true, nil
		}
	}
	return looked, false, nil
}

// ofScan is the error of a scan, with the remedy for want of its right.
func ofScan(err error) error {
	if lackIn(err.Error()) == theCommand {
		return fmt.Errorf("%w: log in as a user who may SCAN (docs/command.md, An operator's user)", err)
	}
	return err
}

// atOnce is how many calls someAtATime makes at a time.
const atOnce = 64

// someAtATime makes a call for each, and ends with the first error.
func someAtATime[T any](ctx context.Context, all []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, one := range all {
		room <- struct{}{}
		calls.Go(func() {
			defer func() { <-room }()
			if ctx.Err() != nil {
				return
			}
			if err := do(ctx, one); err != nil {
				cancel(err)
			}
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}

// sight says how much of the keys was looked at.
func sight(looked int, all bool) string {
	if all {
		return "all keys looked at"
	}
	return "about " + count(looked, "key") + " looked at, and there are more: see --keys"
}

// globbed is a pattern that matches the text alone.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// begins is what the keys of a kind and a name begin with; of all names if that is empty, of all kinds if both are.
func begins(prefix, kind, name string) string {
	switch {
	case kind == "":
		return prefix + ":"
	case name == "":
		return prefix + ":" + kind + ":"
	}
	return prefix + ":" + kind + ":" + name + ":{"
}

// everyKind is the primitives, as their keys name them.
var everyKind = []string{"limit", "inflight", "lock", "guard", "stock"}

// kindOf is the primitive that a key is of. It is empty if the key is not neap's.
func kindOf(st *store.Store, key string) string {
	parts, ok := st.ParseKey(key)
	if !ok || !slices.Contains(everyKind, parts.Kind) {
		return ""
	}
	return parts.Kind
}
