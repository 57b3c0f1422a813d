package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// A holder whose user may not publish releases a lock for which a waiter wants to be
// woken. The release succeeds, and does not report the refused command.
func TestReleaseWithoutThePublishPermission(t *testing.T) {
	t.Parallel()
	one, many := redistest.NewStandalone(t), redistest.NewCluster(t)
	for name, rules := range map[string]string{
		"no-command": redistest.Rules + " -publish -spublish", "no-channel": redistest.Rules + " resetchannels",
	} {
		user := redistest.NewUser(t, rules, append([]*redistest.Server{one}, many.Nodes()...)...)
		for _, c := range []struct{ rdb, mute, admin redis.UniversalClient }{
			{one.Client(t), one.Client(t, func(o *redis.Options) { o.Username = user }), one.Admin(t)},
			{many.Client(t), many.Client(t, func(o *redis.ClusterOptions) { o.Username = user }), many.Admin(t)},
		} {
			prefix := redistest.Prefix(t)
			opts := calm(lock.Options{RetryDelay: 100 * time.Millisecond})
			l, mute := locker(t, c.rdb, prefix, opts), locker(t, c.mute, prefix, opts)

			w := wait(t, l, mute, "released")
			wantsWaking(t, c.admin, recordOf(prefix, "released"))
			w.release(t)

			w = wait(t, l, mute, "forced")
			wantsWaking(t, c.admin, recordOf(prefix, "forced"))
			if was, err := mute.ForceRelease(t.Context(), "forced"); !was || err != nil {
				t.Errorf("%s: ForceRelease: got %v, %v, want true and no error", name, was, err)
			}
			w.gets(t)
			_ = w.held.Release(t.Context())

			tick, done := aTick(), make(chan bool)
			ran, err := mute.Once(t.Context(), "job", tick, lock.Again, func(context.Context) error {
				go func() {
					defer close(done)
					assertRan(t, l, "job", tick, lock.Again, false)
				}()
				wantsWaking(t, c.admin, runRecord(prefix, "job", tick))
				return nil
			})
			if !ran || err != nil {
				t.Errorf("%s: Once: got ran %v, %v, want true and no error", name, ran, err)
			}
			<-done
		}
	}
}

// full is a server without free memory. It counts the calls since then.
func full(t *testing.T, srv *redistest.Server) (asked func() int64) {
	t.Helper()
	admin := srv.Admin(t)
	if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	redistest.ResetStats(t, admin)
	return func() int64 { return redistest.CommandStats(t, admin)["evalsha"].Calls }
}

// A full server cannot note how a waiter wants to be woken. It denies that waiter like
// any other, and the waiter waits.
func TestAcquireWaitsOnAFullServer(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	l := locker(t, srv.Client(t), prefix, calm(lock.Options{RetryDelay: time.Hour, Wait: 2 * time.Second}))
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := try(t, locker(t, srv.Client(t), prefix, calm(lock.Options{})))
	defer release(t, held)
	asked, result := full(t, srv), make(chan error, 1)
	go func() {
		_, err := l.Acquire(t.Context(), "key")
		result <- err
	}()
	// The waiter asks a second time when it can be woken, unless its wait is over by
	// then.
	redistest.Await(t, soon, "the second question", func() bool { return asked() >= 2 })
	if err := <-result; !errors.Is(err, lock.ErrHeld) {
		t.Errorf("Acquire by the waiter: got %v, want ErrHeld", err)
	}
}

func TestOnceWaitsOnAFullServer(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix, tick := srv.Prefix(t), aTick()
	l, other := patient(t, srv.Client(t), prefix), locker(t, srv.Client(t), prefix, unasking())
	if err := l.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	ran, err := l.Once(t.Context(), "job", tick, lock.Again, func(context.Context) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		asked, result := full(t, srv), make(chan error, 1)
		go func() {
			_, err := other.Once(ctx, "job", tick, lock.Again, fine)
			result <- err
		}()
		redistest.Await(t, soon, "the second question", func() bool { return asked() >= 2 })
		cancel()
		if err := <-result; err != context.Canceled { // and no error of Redis is joined with it
			t.Errorf("Once by the waiter: got %v, want context.Canceled alone", err)
		}
		return nil
	})
	if !ran || err != nil {
		t.Errorf("the first Once: got ran %v, %v, want true and no error", ran, err)
	}
}
