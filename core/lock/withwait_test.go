package lock_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
)

// TestWithWait: the Locker waits for as long as it was told, and shares locks, owner and
// counts.
func TestWithWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := redistest.Bubble(t)
		l := locker(t, redistest.BubbleClient(t, m), "neap", &lock.Options{Wait: time.Minute})
		held := try(t, l)
		const brief = 70 * time.Millisecond
		for name, c := range map[string]struct {
			l    *lock.Locker
			want time.Duration
		}{
			"Options.Wait":   {l, time.Minute},
			"brief":          {with(t, l, brief), brief},
			"brief of brief": {with(t, with(t, l, time.Hour), brief), brief},
			"of an owner":    {with(t, l.As("me"), brief), brief},
			"as an owner":    {with(t, l, brief).As("me"), brief},
		} {
			began := time.Now()
			if _, err := c.l.Acquire(t.Context(), "key"); !errors.Is(err, lock.ErrHeld) || time.Since(began) != c.want {
				t.Errorf("%s: got %v after %v, want ErrHeld after %v", name, err, time.Since(began), c.want)
			}
			if owner, _ := c.l.Owner(); strings.HasSuffix(name, "an owner") != (owner == "me") {
				t.Errorf("%s: got the owner %q, want \"me\" only of and as an owner", name, owner)
			}
		}
		release(t, held)
		if s := with(t, l, brief).Stats(); s.Held != 5 || s.Granted != 1 {
			t.Errorf("got stats %+v, want 5 held and 1 granted", s)
		}
	})
}

func with(t *testing.T, l *lock.Locker, wait time.Duration) *lock.Locker {
	t.Helper()
	waiting, err := l.WithWait(wait)
	if err != nil {
		t.Fatal(err)
	}
	return waiting
}

func TestBadWithWait(t *testing.T) {
	t.Parallel()
	l := locker(t, redistest.Embedded(), "neap", nil)
	for _, wait := range []time.Duration{math.MinInt64, -1, 0, time.Millisecond - 1, 24*time.Hour + 1} {
		if other, err := l.WithWait(wait); other != nil || err == nil || !strings.Contains(err.Error(), "use 1ms to 24h0m0s") {
			t.Errorf("%v: got %v, %v, want the range", wait, other, err)
		}
	}
}
