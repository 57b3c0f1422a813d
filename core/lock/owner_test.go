package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestReentry lets one owner hold a lock several times, and release the holds in another
// order. A second owner does not get the lock before the last release.
func TestReentry(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		ctx := t.Context()
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}} {
			l := locker(t, rdb, prefix, nil)
			mine := []*lock.Locker{l.As("a"), locker(t, rdb, prefix, &lock.Options{Lease: time.Minute}).As("a"), l.As("a")}
			others := []*lock.Locker{l, l.As("b"), locker(t, rdb, prefix, nil), locker(t, rdb, prefix, nil).As("A")}
			excluded := func() {
				t.Helper()
				for i, other := range others {
					if _, err := other.Try(ctx, "key"); !errors.Is(err, lock.ErrHeld) {
						t.Errorf("%v: Try by other %d: got %v, want ErrHeld", order, i, err)
					}
				}
			}
			var holds []*lock.Lock
			for i, m := range mine {
				held, err := m.Acquire(ctx, "key")
				if err != nil {
					t.Fatal(err)
				}
				holds = append(holds, held)
				excluded()
				state, err := l.Inspect(ctx, "key")
				if err != nil || state.Owner != "a" || state.Holds != i+1 || state.Fence != holds[0].Fence() || held.Fence() != holds[0].Fence() {
					t.Errorf("%v: Inspect: got %+v, %v, want owner a, %d holds and the fence %d",
						order, state, err, i+1, holds[0].Fence())
				}
				if i > 0 && state.Lease < 55*time.Second {
					t.Errorf("after the inner hold: got %v left of the lease, want 55s at least", state.Lease)
				}
			}
			for n, i := range order {
				for range 3 {
					if err := holds[i].Release(ctx); err != nil {
						t.Errorf("%v: the release of hold %d: got %v, want no error", order, i, err)
					}
					if n < 2 {
						excluded()
					}
				}
				for _, j := range order[n+1:] {
					if err := errors.Join(holds[j].Err(), holds[j].Context().Err(), holds[j].Extend(ctx, time.Second)); err != nil {
						t.Errorf("%v: after the release of %d, hold %d: got %v, want no error", order, i, j, err)
					}
				}
				if err := holds[i].Extend(ctx, time.Second); !errors.Is(err, lock.ErrReleased) {
					t.Errorf("Extend of a released hold: got %v, want ErrReleased", err)
				}
			}
			held, err := others[1].Try(ctx, "key")
			if err != nil || held.Fence() <= holds[0].Fence() {
				t.Fatalf("Try by another after all releases: got %v, want a lock with a larger fence", err)
			}
			if err := held.Release(ctx); err != nil {
				t.Errorf("the release by another: got %v, want no error", err)
			}
			for _, l := range mine {
				if got := l.Stats(); got.Holding != 0 || got.Lost != 0 {
					t.Errorf("got stats %+v, want 0 holding and 0 lost", got)
				}
			}
		}
	})
}

// TestUnnamedHoldsAreNotShared: Inspect reports a random owner for a hold without an
// owner. A locker with that name as its owner does not join the hold.
func TestUnnamedHoldsAreNotShared(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, nil)
		held := try(t, l)
		state, err := l.Inspect(t.Context(), "key")
		if err != nil || !state.Held {
			t.Fatalf("Inspect: got %+v, %v, want it held", state, err)
		}
		if _, err := l.As(state.Owner).Try(t.Context(), "key"); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("Try by the owner that Inspect told: got %v, want ErrHeld", err)
		}
		release(t, held)
	})
}

// TestNestedDo calls Do for the same key inside Do.
func TestNestedDo(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, nil).As("checkout-17")
		depth := 0
		var enter func(outer *lock.Lock) error
		enter = func(outer *lock.Lock) error {
			if depth++; depth == 5 {
				return nil
			}
			return l.Do(t.Context(), "key", func(ctx context.Context) error {
				held, _ := lock.FromContext(ctx)
				if held == outer || outer != nil && held.Fence() != outer.Fence() {
					t.Error("a nested Do: got the outer hold or another fence, want its own hold with the same fence")
				}
				return enter(held)
			})
		}
		if err := enter(nil); err != nil || depth != 5 {
			t.Errorf("nested Do: got the depth %d, %v, want 5 and no error", depth, err)
		}
		if state, err := l.Inspect(t.Context(), "key"); err != nil || state.Held || state.Holds != 0 {
			t.Errorf("Inspect after nested Do: got %+v, %v, want it free", state, err)
		}
	})
}

// TestOwnersAreDistinct uses owners that must not be confused with each other, and that
// must not appear in Redis as they are.
func TestOwnersAreDistinct(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, nil)
		owners := []string{"a", "A", "a ", "\x00", "#a", "hold:a", "fence", "", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("ü", 1<<12)}
		for i, owner := range owners {
			if owner == "" {
				continue
			}
			key := fmt.Sprint(i)
			held, err := l.As(owner).Try(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			for j, other := range owners {
				if i == j || other == "" {
					continue
				}
				if _, err := l.As(other).Try(t.Context(), key); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("owner %d has it, Try by owner %d: got %v, want ErrHeld", i, j, err)
				}
			}
			state, err := l.Inspect(t.Context(), key)
			if err != nil || len(state.Owner) > 64 {
				t.Errorf("Inspect: got %+v, %v, want an owner of 64 bytes at most", state, err)
			}
			if err := held.Release(t.Context()); err != nil {
				t.Errorf("the release by owner %d: got %v, want no error", i, err)
			}
		}
	})
}

// With a secret, owners cannot be read in Redis, and Inspect does not return them.
func TestASecretHidesTheOwner(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		seen := map[string]bool{}
		for _, secret := range []string{"0123456789abcdef", "fedcba9876543210"} {
			st := storetest.Open(t, rdb, store.Options{Prefix: prefix, SubjectSecret: []byte(secret), Budget: 5 * time.Second})
			l, err := lock.New(st, "test", nil)
			if err != nil {
				t.Fatal(err)
			}
			held, err := l.As("alice").Try(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			keys := keysUnder(t, admin, prefix)
			for _, key := range keys {
				all, err := admin.HGetAll(t.Context(), key).Result()
				if owner := all["owner"]; err != nil || !strings.HasPrefix(owner, "#") || strings.Contains(fmt.Sprint(all), "alice") {
					t.Errorf("got the record %v, %v, want an owner that begins with # and no alice", all, err)
				}
				seen[all["owner"]] = true
			}
			state, err := l.Inspect(t.Context(), "key")
			if err != nil || !state.Held || !seen[state.Owner] {
				t.Errorf("Inspect: got %+v, %v, want it held by one of %v", state, err, seen)
			}
			if len(keys) != len(seen) {
				t.Errorf("got %d keys and the owners %v, want one for each", len(keys), seen)
			}
			inner, err := l.As("alice").Try(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			release(t, inner)
			defer release(t, held)
		}
	})
}

// owned is the model of a lock: its owner and its holds.
type owned struct {
	owner string
	holds []*lock.Lock
	gone  []*lock.Lock
	fence int64
}

// step does one thing, and returns an error if the lock is not as in the model.
func (m *owned) step(t *testing.T, l *lock.Locker, r *rand.Rand) error {
	ctx := t.Context()
	switch n := r.IntN(10); {
	case n < 4 && len(m.holds) < 6:
		if err := m.try(ctx, l, r); err != nil {
			return err
		}
	case n < 7 && len(m.holds) > 0:
		i := r.IntN(len(m.holds))
		if err := m.holds[i].Release(ctx); err != nil {
			return err
		}
		m.gone = append(m.gone, m.holds[i])
		m.holds = slices.Delete(m.holds, i, i+1)
	case n == 7 && len(m.holds) > 0:
		if err := m.holds[r.IntN(len(m.holds))].Extend(ctx, 50*time.Millisecond+time.Duration(r.Int64N(int64(time.Minute)))); err != nil {
			return err
		}
	case n == 8 && len(m.gone) > 0:
		held := m.gone[r.IntN(len(m.gone))]
		again, longer := held.Release(ctx), held.Extend(ctx, time.Hour)
		if again != nil || !errors.Is(longer, lock.ErrReleased) {
			return fmt.Errorf("a released hold: got %v of Release and %v of Extend, want none and ErrReleased", again, longer) //nolint:errorlint // either may be nil
		}
	case n == 9:
		state, err := l.Inspect(ctx, "key")
		if err != nil || state.Holds != len(m.holds) || state.Held != (len(m.holds) > 0) || state.Fence != m.fence ||
			state.Held && m.owner != "" && state.Owner != m.owner {
			return fmt.Errorf("Inspect: got %+v, %v", state, err) //nolint:errorlint // it may be nil
		}
	}
	for _, held := range m.holds {
		if held.Err() != nil {
			return held.Err()
		}
	}
	return nil
}

func (m *owned) try(ctx context.Context, l *lock.Locker, r *rand.Rand) error {
	by, owner := l, ""
	if r.IntN(5) > 0 {
		owner = string(rune('a' + r.IntN(2)))
		by = l.As(owner)
	}
	held, err := by.Try(ctx, "key")
	switch {
	case len(m.holds) > 0 && (owner == "" || owner != m.owner):
		if held != nil || !errors.Is(err, lock.ErrHeld) {
			return fmt.Errorf("Try by %q: got a lock %v, %v, want ErrHeld", owner, held != nil, err) //nolint:errorlint // it may be nil
		}
		return nil
	case err != nil:
		return err
	case len(m.holds) > 0 && held.Fence() != m.fence, len(m.holds) == 0 && held.Fence() <= m.fence:
		return fmt.Errorf("Try: got the fence %d, want one as in the model", held.Fence())
	}
	m.owner, m.fence, m.holds = owner, held.Fence(), append(m.holds, held)
	return nil
}

// TestOwnersAgainstAModel takes, extends and releases holds at random.
func TestOwnersAgainstAModel(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		r := redistest.Rand(t)
		ctx, l := t.Context(), locker(t, rdb, prefix, nil)
		var m owned
		for step := range redistest.Ops(3000) {
			if err := m.step(t, l, r); err != nil {
				t.Fatalf("step %d: got %v, want it as in the model %+v", step, err, m)
			}
		}
		for _, held := range m.holds {
			if err := held.Release(ctx); err != nil {
				t.Errorf("the release of what is left: got %v, want no error", err)
			}
		}
		if got := l.Stats(); got.Holding != 0 || got.Lost != 0 || got.Failed != 0 {
			t.Errorf("got stats %+v, want 0 holding, 0 lost and 0 failed", got)
		}
	})
}
