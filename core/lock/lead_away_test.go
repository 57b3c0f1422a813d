package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

// TestLeadWhileRedisIsAway calls Lead before Redis can be reached.
func TestLeadWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"refused", "silent"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redistest.CutClient) {
				rdb.Cut(how)
				ctx, cancel := context.WithCancel(t.Context())
				other := stand(ctx, locker(t, rdb, "neap", nil))
				leader := stand(t.Context(), locker(t, rdb, "neap", nil))
				leader.waits(t, 10*time.Minute)
				cancel()
				other.returns(t, context.Canceled)
				rdb.Mend()
				leader.leads(t, 5*time.Second).end <- nil
				leader.returns(t, nil)
				time.Sleep(time.Minute)
				release(t, try(t, locker(t, rdb, "neap", nil)))
			})
		})
	}
}

// A grant that arrives when its lease is over is given back. Lead then asks with another
// hold, because Redis may still carry out the first call.
func TestLeadIsGrantedTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, l := fakeLocker(t, &lock.Options{Lease: time.Second, Budget: 100 * time.Millisecond})
		f.answer(func(n int, c call) (any, error) {
			if c.script == "acquire" && n == 1 { // first contact may take longer than a lease
				time.Sleep(time.Second - time.Millisecond)
			}
			return yes(n, c)
		})
		if err := l.Lead(t.Context(), "key", nothing); err != nil {
			t.Errorf("Lead: got %v, want no error", err)
		}
		asked, released := f.of("acquire"), f.of("release")
		if len(asked) != 2 || len(released) != 2 || asked[0].args[1] == asked[1].args[1] || released[0].args[0] != asked[0].args[1] {
			t.Fatalf("got the questions %v and the releases %v, want two of each, the first of the first hold", asked, released)
		}
		for _, c := range asked {
			if c.args[0] != c.args[1] {
				t.Errorf("got the owner %v of the hold %v, want the hold", c.args[0], c.args[1])
			}
		}
	})
}

// Lead ends with an error that waiting does not mend.
func TestLeadIsRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redistest.CutClient) {
		if err := m.Set("neap:lock:test:{key}", "of another type"); err != nil {
			t.Fatal(err)
		}
		l := locker(t, rdb, "neap", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.Lead(ctx, "key", nothing); !errors.Is(err, script.ErrFailed) {
			t.Errorf("Lead of a key of another type: got %v, want ErrFailed", err)
		}
		if err := l.Lead(ctx, "", nothing); !errors.Is(err, lock.ErrKey) {
			t.Errorf("Lead without a key: got %v, want ErrKey", err)
		}
	})
}
