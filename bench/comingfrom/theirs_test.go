package comingfrom

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/gofiber/fiber/v2"
	fiberidempotency "github.com/gofiber/fiber/v2/middleware/idempotency"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
	ours "github.com/neap-go/neap/examples/comingfrom"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// all are in no program: they are for readers, and this keeps each of them used.
var all = []any{redisRate, askBoth, ulule, tollBooth, httpRate, redSync, redisLock, setNXLock, setNXOnce, fiberIdempotency}

// TestPagesShowTheCallsOfOtherLibraries finds each block of another library line by line in this package. Such a block
// is fenced as golang: those of neap are fenced as go, and stand under examples.
func TestPagesShowTheCallsOfOtherLibraries(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("theirs.go")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/coming-from/*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, page := range pages {
		shown, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?s)```golang\n(.*?)```").FindAllStringSubmatch(string(shown), -1) {
			blocks++
			if !strings.Contains(flat(string(text)), flat(m[1])) {
				t.Errorf("this block of %s is not in theirs.go:\n%s", page, m[1])
			}
		}
	}
	if blocks < len(all) {
		t.Errorf("got %d blocks of other libraries, want %d at least", blocks, len(all))
	}
}

// flat is without indentation.
func flat(code string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimLeft(line, "\t "))
	}
	return b.String()
}

// TestBothLocksExcludeEither has a process of the deployment in between meet one of before and one of after.
func TestBothLocksExcludeEither(t *testing.T) {
	t.Parallel()
	rdb := redistest.Embedded()
	locker, err := lock.New(rdb, "orders", &lock.Options{Budget: 5 * time.Second, Wait: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	mutexes, locks := redsync.New(goredis.NewPool(rdb)), redislock.New(rdb)
	newMutex := func() *redsync.Mutex {
		return mutexes.NewMutex("redsync", redsync.WithTries(1), redsync.WithExpiry(time.Minute))
	}
	obtain := func(ctx context.Context) (ours.Held, error) { return locks.Obtain(ctx, "redislock", time.Minute, nil) }
	bothOfRedsync := func(ship func(context.Context) error) error {
		return ours.LockBoth(t.Context(), newMutex(), locker, ship)
	}
	bothOfRedislock := func(ship func(context.Context) error) error {
		return ours.ObtainBoth(t.Context(), obtain, locker, ship)
	}
	for name, both := range map[string]func(func(context.Context) error) error{"redsync": bothOfRedsync, "redislock": bothOfRedislock} {
		shipped := false
		err := both(func(ctx context.Context) error {
			shipped = true
			if name == "redsync" && newMutex().TryLock() == nil {
				t.Error("redsync grants its lock beside both")
			}
			if name == "redislock" {
				if _, err := obtain(ctx); !errors.Is(err, redislock.ErrNotObtained) {
					t.Errorf("redislock beside both: got %v, want ErrNotObtained", err)
				}
			}
			if _, err := locker.Try(ctx, "order-17"); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("neap beside both of %s: got %v, want ErrHeld", name, err)
			}
			return nil
		})
		if err != nil || !shipped {
			t.Errorf("both locks of %s: got %v, shipped %t, want it done", name, err, shipped)
		}
	}
	never := func(context.Context) error { t.Error("ships beside another holder"); return nil }
	m := newMutex()
	if err := m.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := bothOfRedsync(never); err == nil {
		t.Error("both beside a lock of redsync: got no error, want one")
	}
	held, err := obtain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := bothOfRedislock(never); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("both beside a lock of redislock: got %v, want ErrNotObtained", err)
	}
	if _, err := m.Unlock(); err != nil {
		t.Error(err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	after, err := locker.Try(t.Context(), "order-17")
	if err != nil {
		t.Fatal(err)
	}
	for _, both := range []func(func(context.Context) error) error{bothOfRedsync, bothOfRedislock} {
		if err := both(never); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("both beside a lock of neap: got %v, want lock.ErrHeld", err)
		}
	}
	after.Release(t.Context())
}

// TestGuardBothKnowsTheOrdersOfBefore has processes of before and of the deployment in between, which share the storage
// of Fiber's middleware.
func TestGuardBothKnowsTheOrdersOfBefore(t *testing.T) {
	t.Parallel()
	guard, err := idempotency.New(redistest.Embedded(), "both", idempotency.Retry{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	running, finish := make(chan struct{}, 1), make(chan struct{}, 9)
	order := func(c *fiber.Ctx) error {
		ran++
		running <- struct{}{}
		<-finish
		return c.SendStatus(fiber.StatusCreated)
	}
	before, between := fiber.New(), fiber.New()
	own := fiberidempotency.New()
	before.Post("/orders", own, order)
	ours.GuardBoth(between, gate.Idempotent(guard, gate.Everyone, &gate.IdempotentOptions{
		Key: gate.ByHeader("X-Idempotency-Key"), Methods: []string{http.MethodPost}, Optional: true,
	}), own, order)
	post := func(app *fiber.App, key string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", nil)
		r.Header.Set("X-Idempotency-Key", "00000000-0000-0000-0000-00000000000"+key)
		res, err := app.Test(r, -1)
		if err != nil {
			t.Error(err)
			return 0
		}
		res.Body.Close()
		return res.StatusCode
	}
	for _, c := range []struct {
		what string
		app  *fiber.App
		key  string
		runs int
	}{
		{"an order of before", before, "1", 1}, {"the same, in between", between, "1", 1},
		{"an order in between", between, "2", 2}, {"the same, before", before, "2", 2}, {"the same, in between", between, "2", 2},
	} {
		finish <- struct{}{}
		if got := post(c.app, c.key); got != fiber.StatusCreated || ran != c.runs {
			t.Errorf("%s: got %d and %d runs, want 201 and %d", c.what, got, ran, c.runs)
		}
		for len(running)+len(finish) > 0 { // of an order that did not run
			select {
			case <-running:
			case <-finish:
			}
		}
	}
	first := make(chan int)
	go func() { first <- post(between, "3") }()
	<-running
	if got := post(between, "3"); got != fiber.StatusConflict {
		t.Errorf("the same while it runs: got %d, want 409", got)
	}
	finish <- struct{}{}
	if got := <-first; got != fiber.StatusCreated {
		t.Errorf("an order that was asked for twice: got %d, want 201", got)
	}
	if got := post(before, "3"); got != fiber.StatusCreated || ran != 3 {
		t.Errorf("the same, before: got %d and %d runs, want the 201 and not the 409 of in between, and 3", got, ran)
	}
}
