package lock_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// These are the defaults, as the documentation of Options tells them.
const (
	defaultLease          = 30 * time.Second
	defaultRetryDelay     = 200 * time.Millisecond
	defaultFenceRetention = 48 * time.Hour
)

func TestBadConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { rdb.Close() })
	round := &wrapped{}
	round.Client = &wrapped{round}
	for _, fine := range []script.Client{
		rdb, &wrapped{rdb}, struct{ redis.UniversalClient }{rdb}, round, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}),
	} {
		if l, err := lock.New(fine, "n", nil); err != nil || l.Name() != "n" {
			t.Errorf("New with a %T: got %v, want a Locker of its name", fine, err)
		}
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
	t.Cleanup(func() { ring.Close() })
	const ns = time.Nanosecond
	for name, c := range map[string]struct {
		rdb  script.Client
		name string
		opts *lock.Options
		want []string // the field and its remedy
	}{
		"empty name":       {rdb, "", nil, []string{"name", "1 to 64"}},
		"name with braces": {rdb, "a{b}", nil, []string{"name", "1 to 64"}},
		"negative budget":  {rdb, "n", &lock.Options{Budget: -1}, []string{"Budget is -1ns", "use 1ms to 1h0m0s, or 0 for 250ms"}},
		"negative lease":   {rdb, "n", &lock.Options{Lease: math.MinInt64}, []string{"Lease is -", "use 50ms to 24h0m0s, or 0 for 30s"}},
		"negative wait":    {rdb, "n", &lock.Options{Wait: -1}, []string{"Wait is -1ns", "or 0 for 10s"}},
		"short delay":      {rdb, "n", &lock.Options{RetryDelay: 5*time.Millisecond - ns}, []string{"RetryDelay is 4.999999ms", "use 5ms", "or 0 for 200ms"}},
		"short MaxHold":    {rdb, "n", &lock.Options{MaxHold: 50*time.Millisecond - ns}, []string{"MaxHold is 49.999999ms", "use 50ms or more, or 0 for no end"}},
		"short retention":  {rdb, "n", &lock.Options{FenceRetention: time.Minute - ns}, []string{"FenceRetention is", "use 1m0s to 8784h0m0s, or 0 for 48h0m0s"}},
		"everything at once": {ring, "a b", &lock.Options{
			Budget: -1, Lease: -1, MaxHold: -1, Wait: -1, RetryDelay: -1, FenceRetention: -1,
		}, []string{"lock.New: ", "Ring", "name", "Budget", "Lease", "MaxHold", "Wait", "RetryDelay", "FenceRetention"}},
	} {
		l, err := lock.New(c.rdb, c.name, c.opts)
		if l != nil {
			t.Errorf("%s: got a Locker, want none", name)
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got the error %v, want one that says %q", name, err, want)
			}
		}
	}
}

type wrapped struct{ script.Client }

// unhurried is a miniredis, and a client that waits for its replies whatever the budget
// is. These tests leave the budget at its default.
func unhurried(t *testing.T) (*miniredis.Miniredis, *redis.Client) {
	t.Helper()
	m := miniredis.RunT(t)
	rdb := redistest.Unhurried(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { rdb.Close() })
	if err := rdb.Ping(t.Context()).Err(); err != nil { // so that the connection is made before a budget begins
		t.Fatal(err)
	}
	return m, rdb
}

func TestOptionsAtTheirEnds(t *testing.T) {
	t.Parallel()
	m, rdb := unhurried(t)
	const odd = 999*time.Microsecond + 999*time.Nanosecond
	for name, c := range map[string]struct {
		opts *lock.Options
		ttl  time.Duration // the TTL of the record, which outlives the lease by the retention
	}{
		"nil":  {nil, defaultLease + defaultFenceRetention},
		"zero": {&lock.Options{}, defaultLease + defaultFenceRetention},
		"longest": {&lock.Options{
			Budget: time.Hour, Lease: 24 * time.Hour, MaxHold: math.MaxInt64, Wait: 24 * time.Hour, RetryDelay: 24 * time.Hour,
			FenceRetention: 366 * 24 * time.Hour,
		}, 367 * 24 * time.Hour},
		"longest MaxHold alone": {&lock.Options{MaxHold: math.MaxInt64}, defaultLease + defaultFenceRetention},
		"shorter MaxHold":       {&lock.Options{MaxHold: 20*time.Second + odd, FenceRetention: time.Minute}, 80 * time.Second},
		"below a millisecond": {&lock.Options{Lease: 10*time.Second + odd, FenceRetention: time.Minute + odd, RetryDelay: 5*time.Millisecond + odd},
			70 * time.Second},
	} {
		l, err := lock.New(rdb, "n", c.opts)
		if err != nil {
			t.Fatalf("%s: New: got %v, want no error", name, err)
		}
		key := strings.ReplaceAll(name, " ", "-")
		held, err := l.Acquire(t.Context(), key)
		if err != nil || held.Err() != nil {
			t.Fatalf("%s: Acquire: got %v, want a lock that is held", name, err)
		}
		if ttl := m.TTL("neap:lock:n:{" + key + "}"); ttl != c.ttl {
			t.Errorf("%s: the record lives for %v, want %v", name, ttl, c.ttl)
		}
		if err := held.Extend(t.Context(), 24*time.Hour); err != nil || held.Err() != nil || held.Context().Err() != nil {
			t.Errorf("%s: Extend: got %v and Err %v, want none", name, err, held.Err())
		}
		if err := held.Release(t.Context()); err != nil {
			t.Errorf("%s: Release: got %v, want no error", name, err)
		}
	}
}

func TestOptionsAreCopied(t *testing.T) {
	t.Parallel()
	m, rdb := unhurried(t)
	opts := &lock.Options{Lease: time.Minute}
	l, err := lock.New(rdb, "n", opts)
	if err != nil {
		t.Fatal(err)
	}
	if opts.Budget != 0 || opts.Wait != 0 {
		t.Errorf("the caller's options after New: got %+v, want them unchanged", opts)
	}
	if _, err := l.Try(t.Context(), "before"); err != nil {
		t.Fatal(err)
	}
	opts.Lease = time.Second
	if _, err := l.Try(t.Context(), "before"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("Try with the options changed: got %v, want ErrHeld", err)
	}
	if got := m.TTL("neap:lock:n:{before}"); got <= time.Minute {
		t.Errorf("the record lives for %v, want more than the lease of the options when they were given", got)
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { rdb.Close() })
	l := locker(t, rdb, "neap", nil)
	ctx := t.Context()
	calls := map[string]func(l *lock.Locker, key string) error{
		"Try":          func(l *lock.Locker, key string) error { _, err := l.Try(ctx, key); return err },
		"Acquire":      func(l *lock.Locker, key string) error { _, err := l.Acquire(ctx, key); return err },
		"Do":           func(l *lock.Locker, key string) error { return l.Do(ctx, key, nothing) },
		"Inspect":      func(l *lock.Locker, key string) error { _, err := l.Inspect(ctx, key); return err },
		"ForceRelease": func(l *lock.Locker, key string) error { _, err := l.ForceRelease(ctx, key); return err },
	}
	for name, call := range calls {
		if err := call(l, ""); !errors.Is(err, lock.ErrKey) {
			t.Errorf("%s without a key: got %v, want ErrKey", name, err)
		}
		if err := call(l.As(""), "key"); !errors.Is(err, lock.ErrOwner) {
			t.Errorf("%s with an empty owner: got %v, want ErrOwner", name, err)
		}
	}
	held, err := l.Try(ctx, "key")
	if err != nil {
		t.Fatal(err)
	}
	for _, ttl := range []time.Duration{math.MinInt64, -1, 0, 50*time.Millisecond - 1, 24*time.Hour + 1, math.MaxInt64} {
		if err := held.Extend(ctx, ttl); !errors.Is(err, lock.ErrLease) {
			t.Errorf("Extend by %v: got %v, want ErrLease", ttl, err)
		}
	}
	if err := held.Release(ctx); err != nil {
		t.Errorf("Release: got %v, want no error", err)
	}
	if got := l.Stats(); got != (lock.Stats{Granted: 1}) {
		t.Errorf("got stats %+v, want 1 granted", got)
	}
}

// However large the budget is, a call without an answer leaves two thirds of the shortest
// lease that it may be granted.
func TestTheBudgetIsAThirdOfTheLeaseAtMost(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]lock.Options{
		"Lease":         {Lease: 3 * time.Second},
		"MaxHold":       {MaxHold: 3 * time.Second},
		"both":          {Lease: time.Minute, MaxHold: 3 * time.Second},
		"the other way": {Lease: 3 * time.Second, MaxHold: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				opts.Budget = time.Hour
				f, l := fakeLocker(t, &opts)
				f.answer(func(n int, c call) (any, error) {
					if c.script == "acquire" {
						return hang(c)
					}
					return yes(n, c)
				})
				began := time.Now()
				_, err := l.Try(t.Context(), "key")
				if took := time.Since(began); !errors.Is(err, script.ErrMaybeExecuted) || took != time.Second {
					t.Errorf("Try: got %v after %v, want ErrMaybeExecuted after 1s", err, took)
				}
				synctest.Wait() // time to take back a grant that no caller was told of
			})
		})
	}
}
