package limit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestRefundGivesBackOnce takes and refunds under each policy alone, and under all of
// them.
func TestRefundGivesBackOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for i, policies := range append(each(slow), slow) {
			refundsOnce(t, must(limit.New(storetest.At(t, rdb, prefix), fmt.Sprintf("once%d", i), policies, closed(patience)))(t))
			for _, key := range redistest.KeysOf(t, admin, prefix) {
				if !strings.Contains(key, ":settled:") {
					t.Errorf("%d policies: got the key %q left, want none but markers", len(policies), key)
				}
			}
		}
	})
	t.Run("local", func(t *testing.T) {
		t.Parallel()
		for _, policies := range append(each(slow), slow) {
			l := must(limit.NewLocal("once", policies, nil))(t)
			refundsOnce(t, l)
		}
	})
}

// wantRemaining waits until so many permits remain for the subject "s" under each policy: a
// refund to a bucket keeps what drains in a moment.
func wantRemaining(t *testing.T, l *limit.Limiter, want int64, when string) {
	t.Helper()
	var d limit.Decision
	defer func() {
		if t.Failed() {
			t.Logf("%s: got %s", when, describe(d))
		}
	}()
	redistest.Await(t, 30*time.Second, fmt.Sprintf("%d permits to remain under each policy %s", want, when), func() bool {
		var err error
		d, err = l.Peek(t.Context(), "s")
		if err != nil {
			t.Fatalf("a peek %s: got %v, want no error", when, err)
		}
		for s := range d.States() {
			if s.Remaining != want {
				return false
			}
		}
		return true
	})
}

func refundsOnce(t *testing.T, l *limit.Limiter) {
	t.Helper()
	ctx := t.Context()
	remaining := func(want int64) {
		t.Helper()
		wantRemaining(t, l, want, "")
	}
	take := func(cost int64) limit.Decision {
		t.Helper()
		return must(l.TakeN(ctx, "s", cost))(t)
	}
	first := take(7)
	second := take(20)
	remaining(73)
	if err := first.Refund(ctx); err != nil {
		t.Errorf("the first refund, by %s: got %v, want no error", first.Policy, err)
	}
	remaining(80)
	for range 2 {
		if err := first.Refund(ctx); !errors.Is(err, limit.ErrRefund) {
			t.Errorf("the first refund again: got %v, want ErrRefund", err)
		}
	}
	remaining(80)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := second.Refund(ended); err != nil {
		t.Errorf("a refund with a canceled context: got %v, want no error", err)
	}
	remaining(100)

	all := take(100)
	denied := take(1)
	peek, err := l.Peek(ctx, "s")
	if err != nil || denied.Allowed {
		t.Fatalf("a take and a peek when all is taken: got %+v, %v, want a denial and no error", denied, err)
	}
	for what, err := range map[string]error{
		"denied":             denied.Refund(ctx),
		"a peek":             peek.Refund(ctx),
		"the zero Decision":  (&limit.Decision{}).Refund(ctx),
		"a nil one":          (*limit.Decision)(nil).Refund(ctx),
		"made to look right": (&limit.Decision{Allowed: true}).Refund(ctx),
	} {
		if !errors.Is(err, limit.ErrRefund) || err.Error() == limit.ErrRefund.Error() {
			t.Errorf("a refund (%s): got %v, want ErrRefund with its reason", what, err)
		}
	}
	free := take(0)
	if err := free.Refund(ctx); err != nil {
		t.Errorf("the refund of a cost of 0: got %v, want no error", err)
	}
	remaining(0)
	must(l.Reset(ctx, "s"))(t)
	if err := all.Refund(ctx); !errors.Is(err, limit.ErrRefund) {
		t.Errorf("a refund after a reset: got %v, want ErrRefund", err)
	}
	remaining(100)
	if got := l.Stats().Refunded; got != 2 {
		t.Errorf("got %d refunds counted, want 2", got)
	}
}

// TestHundredSuccessesThatEndTogether: what they took is given back, and no more attempts
// than the limit are ever admitted.
func TestHundredSuccessesThatEndTogether(t *testing.T) {
	t.Parallel()
	redistest.EachReal(t, func(t *testing.T, connect func() redis.UniversalClient, prefix string) {
		rdb := connect()
		for i, policies := range append(each(slow), slow) {
			l := must(limit.New(storetest.At(t, rdb, prefix), fmt.Sprintf("together%d", i), policies, closed(patience)))(t)
			logins := make([]limit.Decision, 100)
			together(len(logins), func(n int) {
				d, err := l.Take(t.Context(), "client")
				if err != nil || !d.Allowed {
					t.Errorf("%s: a take: got %+v, %v, want it allowed", policies[0].PolicyName(), d, err)
				}
				logins[n] = d
			})
			together(len(logins), func(n int) {
				if err := logins[n].Refund(t.Context()); err != nil {
					t.Errorf("%s: a refund: got %v, want no error", policies[0].PolicyName(), err)
				}
			})
			together(len(logins), func(n int) {
				if err := logins[n].Refund(t.Context()); !errors.Is(err, limit.ErrRefund) {
					t.Errorf("%s: a refund again: got %v, want ErrRefund", policies[0].PolicyName(), err)
				}
			})
			// A refund to a bucket keeps what drains in a thousandth of the time since it
			// was taken; a moment later that has drained.
			redistest.Await(t, time.Minute, "all to be given back to "+policies[0].PolicyName(), func() bool {
				d, err := l.Peek(t.Context(), "client")
				return err == nil && d.Remaining == 100
			})
			var admitted atomic.Int64
			together(150, func(int) {
				d, err := l.Take(t.Context(), "client")
				if err != nil {
					t.Errorf("a take after the refunds: got %v, want no error", err)
				}
				if d.Allowed {
					admitted.Add(1)
				}
			})
			if got := admitted.Load(); got != 100 {
				t.Errorf("%s: got %d failures admitted, want 100", policies[0].PolicyName(), got)
			}
		}
	})
}

// TestSuccessesThatEndAfterTheirWindow give nothing to the next one.
func TestSuccessesThatEndAfterTheirWindow(t *testing.T) {
	t.Parallel()
	for _, policy := range []limit.Policy{
		limit.FixedWindow{Limit: 3, Window: 30 * time.Second},
		limit.SlidingWindow{Limit: 3, Window: 15 * time.Second},
		limit.SlidingLog{Limit: 3, Window: 30 * time.Second},
		limit.TokenBucket{Rate: 1, Per: 10 * time.Second, Burst: 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			near := must(limit.NewLocal("login", []limit.Policy{policy}, nil))(t)
			for _, l := range []*limit.Limiter{near, inBubble(t, redistest.Bubble(t), "login", policy)} {
				take := func(want bool) limit.Decision {
					t.Helper()
					d, err := l.Take(t.Context(), "client")
					if err != nil || d.Allowed != want {
						t.Fatalf("%s: a take: got %+v, %v, want allowed %t", policy.PolicyName(), d, err, want)
					}
					return d
				}
				slow := []limit.Decision{take(true), take(true), take(true)}
				time.Sleep(15 * time.Second)
				if err := slow[2].Refund(t.Context()); err != nil {
					t.Errorf("%s: a refund in time: got %v, want no error", policy.PolicyName(), err)
				}
				time.Sleep(16 * time.Second)
				for range 3 {
					take(true)
				}
				take(false)
				for _, d := range slow {
					if err := d.Refund(t.Context()); !errors.Is(err, limit.ErrRefund) {
						t.Errorf("%s: a late refund: got %v, want ErrRefund", policy.PolicyName(), err)
					}
				}
				take(false)
			}
		})
	}
}
