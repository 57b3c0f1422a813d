package limit_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// holding are the options of a limiter that may be held, and waits for a busy machine.
func holding() *limit.Options {
	opts := closed(patience)
	opts.Holds = true
	return opts
}

// TestAHoldIsForAllProcesses, and for all plans of the limiter. The later end counts,
// whichever process says it. Reset lifts it, and Unban does not.
func TestAHoldIsForAllProcesses(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		window := limit.WithBan(limit.FixedWindow{Name: "w", Limit: 1000, Window: time.Hour}, short)
		one := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{window}, holding()))(t)
		other := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{window}, holding()))(t)
		plan := must(other.With(limit.TokenBucket{Name: "plan", Rate: 1000, Per: time.Second}))(t)
		held := func(least, most time.Duration) {
			t.Helper()
			for name, l := range map[string]*limit.Limiter{"one": one, "other": other, "a plan of the other": plan} {
				for what, ask := range map[string]func() (limit.Decision, error){
					"a take": func() (limit.Decision, error) { return l.Take(t.Context(), "s") },
					"a peek": func() (limit.Decision, error) { return l.Peek(t.Context(), "s") },
				} {
					d, err := ask()
					if err != nil || d.Allowed == (most > 0) || d.OnHold() != (most > 0) || d.Banned() || d.RetryAfter < least || d.RetryAfter > most {
						t.Errorf("%s by %s: got %+v, %v, want held %t for %v to %v", what, name, d, err, most > 0, least, most)
					}
				}
				if d := must(l.Take(t.Context(), "another subject"))(t); !d.Allowed || d.OnHold() {
					t.Errorf("another subject by %s: got %+v, want it allowed", name, d)
				}
			}
		}
		held(0, 0)
		must(0, one.Hold(t.Context(), "s", time.Hour))(t)
		held(59*time.Minute, time.Hour)
		must(0, other.Hold(t.Context(), "s", time.Minute))(t) // which ends before
		held(59*time.Minute, time.Hour)
		must(0, plan.Hold(t.Context(), "s", 2*time.Hour))(t)
		held(119*time.Minute, 2*time.Hour)
		if found := must(one.Unban(t.Context(), "s"))(t); found {
			t.Error("Unban: got found true, want false: a hold is no ban")
		}
		held(119*time.Minute, 2*time.Hour)
		if found := must(one.Reset(t.Context(), "s"))(t); !found {
			t.Error("Reset: got found false, want true")
		}
		held(0, 0)
	})
}

// TestAHoldIsChecked: it is an error where no decision would heed it.
func TestAHoldIsChecked(t *testing.T) {
	t.Parallel()
	srv, rdb := redistest.Miniredis(t)
	window := []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}
	l := must(limit.New(rdb, "checked", window, holding()))(t)
	if err := newTestLocal(t, nil, window[0]).Hold(t.Context(), "s", time.Second); !errors.Is(err, limit.ErrNoHold) {
		t.Errorf("without Holds: got %v, want ErrNoHold", err)
	}
	if err := l.Hold(t.Context(), "s", 0); err == nil || !strings.Contains(err.Error(), "use Reset") {
		t.Errorf("for no time: got %v, want an error that names Reset", err)
	}
	if err := l.Hold(t.Context(), "", time.Second); !errors.Is(err, limit.ErrSubject) {
		t.Errorf("of an empty subject: got %v, want ErrSubject", err)
	}
	srv.SetError("NOPERM this user has no permissions")
	if err := l.Hold(t.Context(), "s", time.Second); !errors.Is(err, script.ErrConfiguration) {
		t.Errorf("refused by Redis: got %v, want ErrConfiguration", err)
	}
	if _, err := limit.New(rdb, "faulty", []limit.Policy{limit.FixedWindow{}}, holding()); err == nil || !strings.Contains(err.Error(), "Limit is 0") {
		t.Errorf("with a faulty policy: got %v, want the fault", err)
	}
	_, err := limit.New(rdb, "prepaid", window, &limit.Options{Holds: true, Prepaid: limit.Prepaid{Most: 10}})
	if err == nil || !strings.Contains(err.Error(), "Holds is set with Prepaid") || !strings.Contains(err.Error(), "leave out") {
		t.Errorf("beside Prepaid: got %v, want an error that names the remedy", err)
	}
}

// TestAWaitEndsWithTheHold: a caller that waits is admitted when the hold ends, and at once
// if this process lifts it.
func TestAWaitEndsWithTheHold(t *testing.T) {
	t.Parallel()
	for lifted, want := range map[bool]time.Duration{false: time.Minute, true: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := must(limit.New(redistest.BubbleClient(t, redistest.Bubble(t)), "wait",
				[]limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, holding()))(t)
			must(0, l.Hold(t.Context(), "s", time.Minute))(t)
			began := time.Now()
			if lifted {
				time.AfterFunc(time.Second, func() { must(l.Reset(t.Context(), "s"))(t) })
			}
			d, err := l.Wait(t.Context(), "s")
			if took := time.Since(began).Round(10 * time.Millisecond); err != nil || !d.Allowed || took != want {
				t.Errorf("lifted %t: got %+v, %v after %v, want it allowed after %v", lifted, d, err, took, want)
			}
		})
	}
}

// TestAHoldIsRemembered: a process repeats the denial without asking Redis.
func TestAHoldIsRemembered(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		sent := new(redistest.CountingHook)
		rdb.AddHook(sent)
		opts := holding()
		opts.RememberDenials = time.Minute
		l := must(limit.New(storetest.At(t, rdb, prefix), "n", []limit.Policy{limit.FixedWindow{Limit: 2, Window: time.Hour}}, opts))(t)
		must(0, l.Hold(t.Context(), "s", time.Hour))(t)
		must(l.Take(t.Context(), "s"))(t)
		before := sent.Scripts.Load()
		for range 10 {
			if d := must(l.Take(t.Context(), "s"))(t); d.Allowed || !d.OnHold() {
				t.Errorf("got %+v, want it held", d)
			}
		}
		if n := sent.Scripts.Load() - before; n != 0 {
			t.Errorf("ten denials that are remembered: got %d calls, want none", n)
		}
	}, redistest.OnStandalone)
}
