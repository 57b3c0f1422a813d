package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
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
