package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestABrokenRecordIsNoOutage of a lock, nor of a job that runs once a tick.
func TestABrokenRecordIsNoOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	t.Run("lock", func(t *testing.T) {
		t.Parallel()
		prefix := redistest.Prefix(t)
		l := locker(t, srv.Client(t), prefix, &lock.Options{NoRenewal: true})
		storetest.Spoil(t, srv.Admin(t), prefix, func() []func() error {
			held, err := l.Try(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			return []func() error{
				func() error { _, err := l.Try(t.Context(), "key"); return err },
				func() error { _, err := l.Inspect(t.Context(), "key"); return err },
				func() error { _, err := l.ForceRelease(t.Context(), "key"); return err },
				func() error { return held.Extend(t.Context(), time.Minute) },
				func() error { return held.Release(t.Context()) },
			}
		})
	})
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		prefix := redistest.Prefix(t)
		l := locker(t, srv.Client(t), prefix, nil)
		tick := time.Now()
		storetest.Spoil(t, srv.Admin(t), prefix, func() []func() error {
			once := func() error {
				_, err := l.Once(t.Context(), "key", tick, lock.Never, func(context.Context) error { return nil })
				return err
			}
			_ = once()
			return []func() error{once}
		})
	})
}
