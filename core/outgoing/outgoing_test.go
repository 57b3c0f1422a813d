package outgoing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/outgoing"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// limiter is a limit of n an hour that may have holds.
func limiter(t *testing.T, rdb script.Client, policy limit.Policy, opts limit.Options) *limit.Limiter {
	t.Helper()
	opts.Fail, opts.Budget = store.FailClosed, time.Minute
	l, err := limit.New(rdb, "partner", []limit.Policy{policy}, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var window = limit.FixedWindow{Name: "quota", Limit: 100, Window: time.Hour}

// TestNewRefuses what would never work, with the remedy.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	log := limit.SlidingLog{Limit: 1, Window: time.Hour}
	for name, c := range map[string]struct {
		limiter *limit.Limiter
		opts    *outgoing.Options
		wants   []string
	}{
		"nothing":        {nil, nil, []string{"limiter is nil", "check its error"}},
		"no holds":       {limiter(t, rdb, window, limit.Options{}), nil, []string{`limiter "partner"`, "set its Options.Holds"}},
		"cannot settle":  {limiter(t, rdb, log, limit.Options{Holds: true}), &outgoing.Options{Settles: true}, []string{"SlidingLog", "use another policy"}},
		"several faults": {nil, &outgoing.Options{Wait: -1, MaxHold: -1}, []string{"limiter is nil", "Wait is -1ns", "0 for no wait", "MaxHold is -1ns"}},
		"all is well":    {limiter(t, rdb, log, limit.Options{Holds: true}), &outgoing.Options{Wait: time.Hour, MaxHold: time.Minute}, nil},
	} {
		_, err := outgoing.New(c.limiter, c.opts)
		if (err == nil) != (c.wants == nil) {
			t.Errorf("%s: got %v, want an error: %t", name, err, c.wants != nil)
		}
		for _, want := range c.wants {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: got %v, want %q in it", name, err, want)
			}
		}
	}
}

// TestACallThatSaysNothingKeepsItsEstimate, also if the limiter's estimates have a lease.
func TestACallThatSaysNothingKeepsItsEstimate(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]limit.Policy{"plain": window, "on a lease": limit.WithLease(window, time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			l := limiter(t, redistest.BubbleClient(t, redistest.Bubble(t)), policy, limit.Options{Holds: true})
			calls, err := outgoing.New(l, nil)
			if err != nil {
				t.Fatal(err)
			}
			for used, left := range map[int64]int64{-1: 90, 0: 100, 3: 97, 30: 70} {
				subject := fmt.Sprint("used ", used)
				call, err := calls.Begin(t.Context(), subject, 10)
				if err != nil {
					t.Fatal(err)
				}
				call.End(t.Context(), used)
				time.Sleep(10 * time.Second)
				if d, err := l.PeekN(t.Context(), subject, 100); err != nil || d.Remaining != left {
					t.Errorf("%s, %d used of 10: got %d left, %v, want %d", name, used, d.Remaining, err, left)
				}
			}
		})
	}
}

// TestTooManyThatWaitAreDenied: with the reason.
func TestTooManyThatWaitAreDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := limit.FixedWindow{Name: "quota", Limit: 1, Window: time.Hour}
		l := limiter(t, redistest.BubbleClient(t, redistest.Bubble(t)), one, limit.Options{Holds: true, MaxWaiting: 1})
		calls, err := outgoing.New(l, &outgoing.Options{Wait: 2 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		begin := func() error {
			_, err := calls.Begin(t.Context(), "s", 1)
			return err
		}
		if err := begin(); err != nil {
			t.Fatal(err)
		}
		waits := make(chan error)
		go func() { waits <- begin() }()
		synctest.Wait()
		err = begin()
		var denied *limit.LimitedError
		if !errors.As(err, &denied) || !errors.Is(err, limit.ErrQueue) || !errors.Is(err, limit.ErrLimited) || denied.RetryAfter != 2*time.Hour {
			t.Errorf("behind one that waits: got %v, want a LimitedError of ErrQueue for 2 h", err)
		}
		if err := <-waits; err != nil {
			t.Errorf("the one that waits: got %v, want no error", err)
		}
	})
}

// TestAnErrorSaysWhyACallIsDenied.
func TestAnErrorSaysWhyACallIsDenied(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	l := limiter(t, rdb, limit.FixedWindow{Name: "quota", Limit: 1, Window: time.Hour}, limit.Options{Holds: true})
	calls, err := outgoing.New(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	call, err := calls.Begin(t.Context(), "s", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := calls.Begin(t.Context(), "s", 1); err == nil || !strings.Contains(err.Error(), `policy "quota": the limit of 1 is reached: try again after `) {
		t.Errorf("over the limit: got %v, want it to name the policy and the limit", err)
	}
	if err := call.Answered(t.Context(), 3*time.Hour, true); err != nil {
		t.Fatal(err)
	}
	if _, err := calls.Begin(t.Context(), "s", 1); err == nil || !strings.Contains(err.Error(), "on hold: try again after ") {
		t.Errorf("on hold: got %v, want it to say so", err)
	}
}
