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
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// fences remembers the fences that the grants of a key have had.
type fences struct {
	locker *lock.Locker
	last   int64
	how    []string
}

// next takes the lock when it is free, and checks that its fence has grown.
func (f *fences) next(t *testing.T) *lock.Lock {
	t.Helper()
	var held *lock.Lock
	var err error
	redistest.Await(t, 10*time.Second, "the lock, after "+strings.Join(f.how, ", "), func() bool {
		held, err = f.locker.Try(t.Context(), "key")
		return err == nil
	})
	if held.Fence() <= f.last {
		t.Fatalf("after %s: got the fence %d, want more than %d", strings.Join(f.how, ", "), held.Fence(), f.last)
	}
	f.last = held.Fence()
	return held
}

// TestFenceGrows ends one hold after the other, in each possible way. The server's clock
// was ahead by a day when it gave the first fence, so its clock alone would give smaller
// fences.
func TestFenceGrows(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"appendonly": {"--appendonly", "yes", "--appendfsync", "always"},
		"snapshots":  {"--save", "3600 1000000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t, args...)
			admin, prefix := srv.Admin(t), srv.Prefix(t)
			l := locker(t, srv.Client(t), prefix, &lock.Options{Lease: 15 * time.Second})
			short := locker(t, srv.Client(t), prefix, &lock.Options{Lease: 1500 * time.Millisecond, NoRenewal: true})
			f := &fences{locker: l}
			if err := f.next(t).Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.last += (24 * time.Hour).Microseconds()
			if err := admin.HSet(t.Context(), prefix+":lock:test:{key}", "fence", f.last).Err(); err != nil {
				t.Fatal(err)
			}
			rng := redistest.Rand(t)
			endings := []string{"release", "expiry", "force", "script flush", "restart, free", "restart, held"}
			for round := range 3 * len(endings) {
				if round%len(endings) == 0 {
					rng.Shuffle(len(endings), func(i, j int) { endings[i], endings[j] = endings[j], endings[i] })
				}
				how := endings[round%len(endings)]
				f.how = append(f.how, how)
				f.locker = l
				if how == "expiry" {
					f.locker = short
				}
				held := f.next(t)
				if how == "expiry" || how == "restart, held" { // it may be lost, so there is nothing to check before the next grant
					defer held.Release(context.Background())
				} else if _, err := l.Try(t.Context(), "key"); !errors.Is(err, lock.ErrHeld) {
					t.Errorf("a second Try: got %v, want ErrHeld", err)
				}
				restart := func() {
					if name == "snapshots" {
						if err := admin.Save(t.Context()).Err(); err != nil {
							t.Fatal(err)
						}
					}
					srv.Stop(t)
					srv.Start(t)
				}
				switch how {
				case "force":
					if was, err := l.ForceRelease(t.Context(), "key"); !was || err != nil {
						t.Errorf("ForceRelease: got %v, %v, want true and no error", was, err)
					}
				case "restart, held":
					restart()
					s, err := l.Inspect(t.Context(), "key")
					if err != nil || !s.Held || s.Fence != held.Fence() {
						t.Errorf("Inspect after a restart: got %+v, %v, want it held with the fence %d",
							s, err, held.Fence())
					}
					if err := held.Release(t.Context()); err != nil {
						t.Errorf("Release after a restart: got %v, want no error", err)
					}
				case "release", "script flush", "restart, free":
					if err := held.Release(t.Context()); err != nil {
						t.Errorf("Release: got %v, want no error", err)
					}
				}
				switch how {
				case "script flush":
					if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
				case "restart, free":
					restart()
				}
			}
		})
	}
}

// TestFenceGrowsWhenTheClockIsSetBack sets the server's clock back and forth between the
// grants, by up to a day in all.
func TestFenceGrowsWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	m, rdb := redistest.Miniredis(t)
	l := locker(t, rdb, redistest.Prefix(t), &lock.Options{Lease: time.Minute, NoRenewal: true})
	f := &fences{locker: l}
	rng := redistest.Rand(t)
	latest := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for range redistest.Ops(5000) {
		now := latest.Add(-time.Duration(rng.Int64N(int64(24 * time.Hour))))
		if rng.IntN(2) == 0 {
			latest = latest.Add(time.Duration(rng.Int64N(int64(2 * time.Hour))))
			now = latest
		}
		m.SetTime(now)
		held := f.next(t)
		switch rng.IntN(3) {
		case 0:
			if err := held.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 1:
			if _, err := l.ForceRelease(t.Context(), "key"); err != nil {
				t.Fatal(err)
			}
		case 2:
			m.SetTime(now.Add(time.Minute))
			latest = now.Add(max(latest.Sub(now), time.Minute))
			if s, err := l.Inspect(t.Context(), "key"); err != nil || s.Held {
				t.Fatalf("Inspect after the lease: got %+v, %v, want it not held", s, err)
			}
		}
	}
}

// No fence is given twice, even if something else wrote a fence that cannot grow.
func TestAFenceThatCannotGrowIsRefused(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		l := locker(t, rdb, prefix, nil)
		tick := aTick()
		for _, fence := range []string{"9007199254740992", "9223372036854775807", "1e300", "inf", "nan"} {
			for _, key := range []string{prefix + ":lock:test:{key}", fmt.Sprintf("%s:lock:test:{job}:%d", prefix, tick.UnixMilli())} {
				if err := admin.HSet(t.Context(), key, "fence", fence, "open", "").Err(); err != nil {
					t.Fatal(err)
				}
				if err := admin.PExpire(t.Context(), key, time.Minute).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if held, err := l.Try(t.Context(), "key"); held != nil || !errors.Is(err, script.ErrFailed) {
				t.Errorf("Try behind the fence %s: got %v, %v, want no lock and ErrFailed", fence, held, err)
			}
			ran, err := l.Once(t.Context(), "job", tick, lock.Again, func(context.Context) error { return nil })
			if ran || !errors.Is(err, script.ErrFailed) {
				t.Errorf("Once behind the fence %s: got ran %v, %v, want false and ErrFailed", fence, ran, err)
			}
		}
	})
}

// After a failover, a replica may have a record from before the last grants. The new
// primary gives none of their fences again.
func TestFenceGrowsOnAnOldRecord(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		f := &fences{locker: locker(t, rdb, prefix, nil), how: []string{"a record that is older"}}
		release(t, f.next(t))
		before := f.last
		for range 3 {
			release(t, f.next(t))
		}
		if err := admin.HSet(t.Context(), recordOf(prefix, "key"), "fence", before).Err(); err != nil {
			t.Fatal(err)
		}
		release(t, f.next(t))
	})
}
