package gate_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

const logins = 100

// login is a gate for 100 failed logins a window.
func login(t *testing.T, l *limit.Limiter) gate.Gate {
	return gate.RateLimit(l, everyone, &gate.RateLimitOptions{
		Count:   gate.OnlyFailures,
		OnError: func(_ gate.Request, err error) { t.Errorf("the hook was told %v, want nothing", err) },
	})
}

// enter lets n requests in at the same time and returns those that were admitted.
func enter(g gate.Gate, n int) (admitted []gate.Pass) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if p := g.Enter(&request{}); p.Reply == nil {
				mu.Lock()
				defer mu.Unlock()
				admitted = append(admitted, p)
			}
		})
	}
	wg.Wait()
	return admitted
}

// leave ends requests together, all with one status.
func leave(running []gate.Pass, status int) {
	var wg sync.WaitGroup
	for _, p := range running {
		wg.Go(func() { p.Leave(&gate.Reply{Status: status}) })
	}
	wg.Wait()
}

// fail is how many of n failing attempts are admitted.
func fail(g gate.Gate, n int) int {
	admitted := enter(g, n)
	leave(admitted, 401)
	return len(admitted)
}

// buyNothing tests that slow logins which succeed at the same time give back what they
// took, and no more.
func buyNothing(t *testing.T, g gate.Gate, slow func()) {
	t.Helper()
	running := enter(g, logins+20)
	if len(running) != logins {
		t.Fatalf("%d are in flight, want %d", len(running), logins)
	}
	if n := fail(g, 5); n != 0 {
		t.Errorf("while %d are in flight, %d attempts were let in, want 0", logins, n)
	}
	slow()
	leave(running, 200)
	if n := fail(g, logins+20); n != logins {
		t.Errorf("%d attempts were let in, want %d", n, logins)
	}
}

// late is how many attempts are admitted, of 40 and then of 100 more, around logins that
// succeed after their window has ended.
func late(g gate.Gate, window func()) [2]int {
	running := enter(g, logins)
	window()
	before := fail(g, 40)
	leave(running, 200)
	return [2]int{before, fail(g, logins)}
}

// nothingLate is the expected result: late logins give nothing back.
var nothingLate = [2]int{40, logins - 40}

func TestLoginsInProcess(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]limit.Policy{
		"fixed window": limit.FixedWindow{Limit: logins, Window: 30 * time.Second},
		"sliding log":  limit.SlidingLog{Limit: logins, Window: 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			t.Log(name)
			buyNothing(t, login(t, local(t, p)), func() { time.Sleep(20 * time.Second) })
			if got := late(login(t, local(t, p)), func() { time.Sleep(31 * time.Second) }); got != nothingLate {
				t.Errorf("%v attempts were let in, want %v", got, nothingLate)
			}
		})
	}
}

// onRedis is a limiter for everyone on a real server.
func onRedis(t *testing.T, rdb redis.UniversalClient, prefix string, p limit.Policy) *limit.Limiter {
	t.Helper()
	l, err := limit.New(storetest.At(t, rdb, prefix), "login", []limit.Policy{p}, &limit.Options{
		Budget: 10 * time.Second, Fail: store.FailClosed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLogins(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for name, p := range map[string]limit.Policy{
			"fixed window": limit.FixedWindow{Limit: logins, Window: time.Hour},
			"sliding log":  limit.SlidingLog{Limit: logins, Window: time.Hour},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				buyNothing(t, login(t, onRedis(t, rdb, prefix, p)), func() {})
			})
		}
	}, redistest.OnStandalone, redistest.OnCluster) // miniredis refunds less now and then
}

// TestLateLogins takes as long as a window. If the machine is too slow to do the rest
// within the next window, it starts again with a window that is twice as long.
func TestLateLogins(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for window := 4 * time.Second; window < 5*time.Minute; window *= 2 {
			l := onRedis(t, rdb, prefix, limit.FixedWindow{Limit: logins, Window: window})
			var next time.Time
			got := late(login(t, l), func() {
				redistest.Await(t, window+time.Minute, "the window to end", func() bool {
					d, err := l.Peek(context.Background(), "everyone")
					return err == nil && d.Remaining == logins
				})
				next = time.Now()
			})
			if time.Since(next) < window {
				if got != nothingLate {
					t.Errorf("%v attempts were let in, want %v", got, nothingLate)
				}
				return
			}
		}
		t.Error("the rest of the test never finished within one window, want it to take a fraction of one")
	}, redistest.OnStandalone, redistest.OnCluster) // miniredis refunds less now and then
}
