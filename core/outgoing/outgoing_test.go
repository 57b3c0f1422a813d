package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/inflight"
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
			for used, left := range map[int64]int64{-1: 90, 0: 100, 3: 97, 30: 70, 1 << 60: 0} {
				subject := fmt.Sprint("used ", used)
				call, err := calls.Begin(t.Context(), subject, 10, nil)
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
			_, err := calls.Begin(t.Context(), "s", 1, nil)
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
	call, err := calls.Begin(t.Context(), "s", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := calls.Begin(t.Context(), "s", 1, nil); err == nil || !strings.Contains(err.Error(), `policy "quota": the limit of 1 is reached: try again after `) {
		t.Errorf("over the limit: got %v, want it to name the policy and the limit", err)
	}
	call.Answered(t.Context(), 3*time.Hour, true)
	if _, err := calls.Begin(t.Context(), "s", 1, nil); err == nil || !strings.Contains(err.Error(), "on hold: try again after ") {
		t.Errorf("on hold: got %v, want it to say so", err)
	}
}

// deaf is a client that loses calls of one key while it is armed, as Hold's are. A decision has
// the keys of its policies, too.
type deaf struct {
	redistest.Processor
	armed atomic.Bool
}

func (d *deaf) Process(ctx context.Context, cmd redis.Cmder) error {
	if d.armed.Load() && fmt.Sprint(cmd.Args()[2]) == "1" {
		cmd.SetErr(io.ErrUnexpectedEOF)
		return io.ErrUnexpectedEOF
	}
	return d.Processor.Process(ctx, cmd)
}

// TestAHoldThatRedisDidNotConfirm stops the calls of this process, also those in line. It does
// not depend on the call's context, and each attempt tells Redis again.
func TestAHoldThatRedisDidNotConfirm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := &deaf{Processor: redistest.BubbleClient(t, redistest.Bubble(t))}
		one := limit.TokenBucket{Name: "quota", Rate: 1, Per: time.Minute}
		l, err := limit.New(client, "partner", []limit.Policy{one}, &limit.Options{Holds: true, Fail: store.FailClosed})
		if err != nil {
			t.Fatal(err)
		}
		calls, err := outgoing.New(l, &outgoing.Options{Wait: 2 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var told []error
		call, err := calls.Begin(t.Context(), "s", 1, func(err error) { told = append(told, err) })
		if err != nil {
			t.Fatal(err)
		}
		inLine := make(chan error)
		go func() {
			_, err := calls.Begin(t.Context(), "s", 1, nil)
			inLine <- err
		}()
		synctest.Wait()
		client.armed.Store(true)
		ended, end := context.WithCancel(t.Context())
		end()
		over := time.Now().Add(90 * time.Second)
		call.Answered(ended, time.Until(over), true)
		if len(told) != 1 || !strings.Contains(told[0].Error(), "limit_ban.lua") {
			t.Errorf("told of %v, want of the hold that Redis did not confirm", told)
		}
		var denied *limit.LimitedError
		if err := <-inLine; !errors.As(err, &denied) || !errors.Is(err, outgoing.ErrOnHold) || (denied.RetryAfter-time.Until(over)).Abs() > time.Second {
			t.Errorf("the one in line: got %v, want it on hold until then", err)
		}
		client.armed.Store(false)
		if _, err := calls.Begin(ended, "s", 1, nil); !errors.Is(err, outgoing.ErrOnHold) {
			t.Errorf("then: got %v, want it on hold", err)
		}
		if d, err := l.Peek(t.Context(), "s"); err != nil || !d.OnHold() {
			t.Errorf("got held %t, %v, want Redis told of the hold", d.OnHold(), err)
		}
		time.Sleep(time.Until(over))
		if _, err := calls.Begin(t.Context(), "s", 1, nil); err != nil || time.Now().After(over) {
			t.Errorf("after the hold: got %v, %v later, want the permit that the one in line gave back", err, time.Since(over))
		}
	})
}

// TestAHoldOfShadows denies nothing, also if Redis did not confirm it.
func TestAHoldOfShadows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := &deaf{Processor: redistest.BubbleClient(t, redistest.Bubble(t))}
		calls, err := outgoing.New(limiter(t, client, limit.Shadow(window), limit.Options{Holds: true}), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, lost := range []bool{true, false} {
			told := 0
			call, err := calls.Begin(t.Context(), "s", 1, func(error) { told++ })
			if err != nil {
				t.Fatal(err)
			}
			client.armed.Store(lost)
			call.Answered(t.Context(), time.Hour, true)
			if _, err := calls.Begin(t.Context(), "s", 1, nil); err != nil || (told > 0) != lost {
				t.Errorf("lost: %t: got %v and %d told, want the call made", lost, err, told)
			}
			client.armed.Store(false)
		}
	})
}

// TestOnErrorIsToldOfASettlement that was given up, minutes after its call has ended.
func TestOnErrorIsToldOfASettlement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := &redistest.CutClient{Client: redistest.BubbleClient(t, redistest.Bubble(t))}
		calls, err := outgoing.New(limiter(t, rdb, window, limit.Options{Holds: true}), nil)
		if err != nil {
			t.Fatal(err)
		}
		var told []error
		call, err := calls.Begin(t.Context(), "s", 10, func(err error) { told = append(told, err) })
		if err != nil {
			t.Fatal(err)
		}
		rdb.Cut("refused")
		call.End(t.Context(), 30)
		if len(told) != 0 {
			t.Errorf("at once: told of %v, want nothing yet", told)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		var dropped *limit.DroppedError
		if len(told) != 1 || !errors.As(told[0], &dropped) || dropped.Subject != "s" || dropped.Taken != 10 || dropped.Actual != 30 {
			t.Errorf("after ten minutes: told of %v, want of the settlement of 10 to 30", told)
		}
	})
}

// TestOnErrorIsToldOfDecisionsWithoutRedis, also of denials and of slots. If it panics, the call
// has ended.
func TestOnErrorIsToldOfDecisionsWithoutRedis(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit, slots bool // which has no Redis
		panics       bool
		taken        int // how many calls are in flight before
		denied       bool
	}{
		"a permit":             {limit: true},
		"no permit":            {limit: true, taken: 1, denied: true},
		"a slot":               {slots: true},
		"no slot":              {slots: true, taken: 1, denied: true},
		"a permit, and panics": {limit: true, panics: true},
		"a slot, and panics":   {slots: true, panics: true},
	} {
		srvLimit, rdbLimit := redistest.Miniredis(t)
		srvSlots, rdbSlots := redistest.Miniredis(t)
		most := int64(100)
		if c.limit {
			most = 1
		}
		l, err := limit.New(rdbLimit, "partner", []limit.Policy{limit.FixedWindow{Limit: most, Window: time.Hour}}, &limit.Options{Holds: true, Budget: time.Minute})
		slots, fault := inflight.New(rdbSlots, "partner", 1, &inflight.Options{Budget: time.Minute})
		if err != nil || fault != nil {
			t.Fatal(err, fault)
		}
		opts := &outgoing.Options{}
		if c.slots {
			opts.Concurrency = slots
		}
		calls, err := outgoing.New(l, opts)
		if err != nil {
			t.Fatal(err)
		}
		if c.limit {
			srvLimit.SetError("ERR secret trouble")
		}
		if c.slots {
			srvSlots.SetError("ERR secret trouble")
		}
		for range c.taken {
			if _, err := calls.Begin(t.Context(), "s", 1, nil); err != nil {
				t.Fatal(err)
			}
		}
		var told []error
		err = func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("a panic: %v", p)
				}
			}()
			_, err = calls.Begin(t.Context(), "s", 1, func(err error) {
				told = append(told, err)
				if c.panics {
					panic("of onError")
				}
			})
			return err
		}()
		if len(told) != 1 || !strings.Contains(told[0].Error(), "secret trouble") {
			t.Errorf("%s: told of %v, want once why Redis did not decide", name, told)
		}
		if errors.Is(err, limit.ErrLimited) != c.denied || (err != nil) != (c.denied || c.panics) {
			t.Errorf("%s: got %v, want a denial: %t", name, err, c.denied)
		}
		if _, err := calls.Begin(t.Context(), "s", 1, nil); c.slots && c.panics && err != nil {
			t.Errorf("%s: got %v, want the slot free", name, err)
		}
	}
}
