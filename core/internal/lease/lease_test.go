package lease

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	errExpired = errors.New("expired")
	errMaxHeld = errors.New("held for too long")
	errLost    = errors.New("lost")
	errOver    = errors.New("over")
	errAway    = errors.New("away")
)

type key struct{}

// holder answers renewals as it is told.
type holder struct {
	mu     sync.Mutex
	answer func(n int, ttl time.Duration) (left time.Duration, lost, err error)
	asks   []ask
	began  time.Time
	held   int
	lost   int
	parent context.Context
}

type ask struct {
	after time.Duration // from the beginning on
	ttl   time.Duration
}

func (h *holder) asked() []ask {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asks)
}

func (h *holder) Renew(_ context.Context, ttl time.Duration) (time.Duration, time.Time, error, error) {
	since := time.Now()
	h.mu.Lock()
	h.asks = append(h.asks, ask{since.Sub(h.began), ttl})
	n := len(h.asks)
	h.mu.Unlock()
	left, lost, err := h.answer(n, ttl)
	return left, since, lost, err
}
func (h *holder) Parent() context.Context { return context.WithValue(h.parent, key{}, h) }
func (h *holder) Key() string             { return "key" }
func (h *holder) Held()                   { h.held++ }
func (h *holder) Lost()                   { h.lost++ }

func granted(_ int, ttl time.Duration) (time.Duration, error, error) { return ttl, nil, nil }
func away(int, time.Duration) (time.Duration, error, error)          { return 0, nil, errAway }

func begin(t *testing.T, terms *Terms, answer func(int, time.Duration) (time.Duration, error, error)) (*Lease, *holder) {
	t.Helper()
	h := &holder{answer: answer, began: time.Now(), parent: t.Context()}
	terms.Expired, terms.MaxHeld, terms.Wheel = errExpired, errMaxHeld, exactWheel()
	l := &Lease{}
	if !l.Begin(h, terms, h.began, terms.Lease) || h.held != 1 {
		t.Fatal("Begin: got false, or not held once, want true and held once")
	}
	return l, h
}

const ttl = 3 * time.Second

// exactWheel makes a wheel whose renewals are not early.
func exactWheel() *Wheel {
	w := NewWheel(func(string) string { return "" })
	w.exact = true
	return w
}

func TestRenewsAtAThird(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, h := begin(t, &Terms{Lease: ttl}, func(n int, ttl time.Duration) (time.Duration, error, error) {
			if n == 3 || n == 4 { // asked again sooner
				return away(n, ttl)
			}
			return granted(n, ttl)
		})
		time.Sleep(6 * time.Second)
		const s = time.Second
		var want []ask
		for _, at := range []time.Duration{s, 2 * s, 3 * s, 3*s + s/3, 3*s + 2*(s/3), 4*s + 2*(s/3), 5*s + 2*(s/3)} {
			want = append(want, ask{at, ttl})
		}
		if got := h.asked(); !slices.Equal(got, want) {
			t.Errorf("the renewals: got %v, want %v", got, want)
		}
		if l.Err() != nil || l.End(errOver) != nil || l.Err() != errOver || context.Cause(l.Context()) != errOver || h.lost != 0 {
			t.Errorf("End: got Err %v, the cause %v and lost %d times, want nil before, %v then, and 0",
				l.Err(), context.Cause(l.Context()), h.lost, errOver)
		}
		n := len(h.asked())
		time.Sleep(time.Hour)
		if len(h.asked()) != n {
			t.Errorf("a lease that is over: got %d renewals, want 0", len(h.asked())-n)
		}
	})
}

func TestBeginsTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			ago  time.Duration
			want bool
		}{{ttl - margin(ttl) - 1, true}, {ttl - margin(ttl), false}, {time.Hour, false}} {
			h := &holder{answer: granted, began: time.Now(), parent: t.Context()}
			l := &Lease{}
			if got := l.Begin(h, &Terms{Wheel: exactWheel(), Lease: ttl, Expired: errExpired}, time.Now().Add(-c.ago), ttl); got != c.want {
				t.Errorf("Begin, asked %v ago: got %v, want %v", c.ago, got, c.want)
			}
			if c.want {
				if l.Err() != nil || h.held != 1 {
					t.Errorf("asked %v ago: got Err %v and held %d times, want nil and once", c.ago, l.Err(), h.held)
				}
			} else if l.Err() != errExpired || h.held != 0 || h.lost != 0 || context.Cause(l.Context()) != errExpired || l.End(errOver) != errExpired {
				t.Errorf("asked %v ago: got Err %v, held %d and lost %d times, want %v, 0 and 0",
					c.ago, l.Err(), h.held, h.lost, errExpired)
			}
			time.Sleep(time.Hour)
			if !c.want && len(h.asked()) != 0 {
				t.Errorf("asked %v ago: got %d renewals, want 0", c.ago, len(h.asked()))
			}
			l.End(errOver)
		}
	})
}

func TestMaxHoldBeginsWithTheQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &holder{answer: granted, began: time.Now(), parent: t.Context()}
		time.Sleep(2 * time.Second)
		l := &Lease{}
		l.Begin(h, &Terms{Wheel: exactWheel(), Lease: ttl, MaxHold: 5 * time.Second, MaxHeld: errMaxHeld}, h.began, ttl)
		<-l.Context().Done()
		if took := time.Since(h.began); took > 5*time.Second || l.Err() != errMaxHeld {
			t.Errorf("a lease with MaxHold: got its end after %v and Err %v, want at most 5s and %v", took, l.Err(), errMaxHeld)
		}
	})
}

func TestContextIsOfTheParent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, h := begin(t, &Terms{Lease: ttl}, granted)
		parent, cancel := context.WithCancelCause(t.Context())
		h.parent = parent
		ctx := l.Context()
		if ctx.Value(key{}) != h || ctx != l.Context() || ctx.Err() != nil {
			t.Errorf("the Context: got %v for the parent's value, %v for the same Context again, and Err %v, want true, true and nil",
				ctx.Value(key{}) == h, ctx == l.Context(), ctx.Err())
		}
		l.Drop(errAway)
		if context.Cause(ctx) != errAway || l.Err() != nil {
			t.Errorf("after Drop: got the cause %v and Err %v, want %v and nil", context.Cause(ctx), l.Err(), errAway)
		}
		h.parent = t.Context()
		other := l.Context()
		cancel(errLost)
		if other == ctx || other.Err() != nil {
			t.Errorf("the next Context: got another one %v, Err %v, want true, nil", other != ctx, other.Err())
		}
		l.End(errOver)
		if context.Cause(other) != errOver {
			t.Errorf("after End: got the cause %v, want %v", context.Cause(other), errOver)
		}
	})
}

// TestDetachedOutlivesItsParent: it keeps the values and the deadline of its parent.
func TestDetachedOutlivesItsParent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, h := begin(t, &Terms{Lease: ttl}, granted)
		parent, cancel := context.WithTimeout(t.Context(), time.Hour)
		h.parent = parent
		detached, attached := l.Detached(), l.Context()
		cancel()
		due, _ := parent.Deadline()
		if got, _ := detached.Deadline(); detached.Value(key{}) != h || detached != l.Detached() || got != due {
			t.Errorf("got %v for the parent's value, %v for the same again, and the deadline %v, want true, true and %v",
				detached.Value(key{}) == h, detached == l.Detached(), got, due)
		}
		if attached.Err() == nil || detached.Err() != nil {
			t.Errorf("after the parent: got Err %v of Context and %v of Detached, want one and none", attached.Err(), detached.Err())
		}
		l.End(errOver)
		if context.Cause(detached) != errOver {
			t.Errorf("after End: got the cause %v, want %v", context.Cause(detached), errOver)
		}
	})
}

func TestErrIsRightBeforeTheTimers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		terms := &Terms{Lease: ttl, NoRenewal: true}
		l, h := begin(t, terms, granted)
		terms.Wheel.timer.Stop() // as it is while the process does not run
		time.Sleep(ttl - margin(ttl) - 1)
		if l.Err() != nil {
			t.Errorf("before the end: got Err %v, want nil", l.Err())
		}
		time.Sleep(time.Nanosecond)
		if l.Err() != errExpired || h.lost != 1 {
			t.Errorf("at the end: got Err %v and lost %d times, want %v and once", l.Err(), h.lost, errExpired)
		}
		if err := l.Extend(t.Context(), ttl); err != errExpired {
			t.Errorf("Extend after the end: got %v, want %v", err, errExpired)
		}
	})
}
