package lock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// hearers reports whether a server notifies the given number of clients of a key's
// releases.
func hearers(t *testing.T, admin *redis.Client, key string) int64 {
	t.Helper()
	ctx := t.Context()
	plain, err := admin.PubSubNumSub(ctx, key).Result()
	if err != nil {
		t.Fatal(err)
	}
	sharded, err := admin.PubSubShardNumSub(ctx, key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return plain[key] + sharded[key]
}

func heard(t *testing.T, admin *redis.Client, key string, n int64) {
	t.Helper()
	redistest.Await(t, soon, fmt.Sprintf("%d to hear of %s", n, key), func() bool { return hearers(t, admin, key) == n })
}

func TestARestartedServerWakesAgain(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	prefix := srv.Prefix(t)
	opts := calm(lock.Options{RetryDelay: 100 * time.Millisecond})
	l, holder := locker(t, srv.Client(t), prefix, opts), locker(t, srv.Client(t), prefix, opts)
	for again := range 2 {
		w := wait(t, l, holder, "key")
		heard(t, srv.Admin(t), recordOf(prefix, "key"), 1)
		w.release(t)
		if again == 0 {
			srv.Stop(t)
			srv.Start(t)
		}
	}
}

// If Redis does not know one command, another is used. A message of plain PUBLISH reaches
// a whole cluster, too. A waiter that receives nothing asks again.
func TestRedisWithoutTheCommands(t *testing.T) {
	t.Parallel()
	still := redistest.Witness(t)
	many := redistest.NewCluster(t, "--rename-command", "SSUBSCRIBE", "")
	prefix := many.Prefix(t)
	w := wait(t, locker(t, many.Client(t), prefix, calm(lock.Options{})),
		locker(t, many.Client(t), prefix, calm(lock.Options{})), "key")
	asksWith(t, many.Admin(t), recordOf(prefix, "key"), "PUBLISH")
	w.release(t)

	one := redistest.NewStandalone(t, "--rename-command", "SUBSCRIBE", "")
	prefix = one.Prefix(t)
	l := locker(t, one.Client(t), prefix, calm(lock.Options{}))
	for range 3 {
		w = wait(t, l, locker(t, one.Client(t), prefix, calm(lock.Options{})), "key")
		inLine(t, l, 1)
		if took := w.release(t); took > defaultRetryDelay+max(time.Second, 2*still()) {
			t.Errorf("the waiter got the lock after %v, want within %v or a little more", took, defaultRetryDelay)
		}
	}
}

// A lock is held, extended, waited for and released while its slot moves to another
// master. The waiter is notified of the release there.
func TestALockMovesWithItsSlot(t *testing.T) {
	t.Parallel()
	many := redistest.NewCluster(t)
	prefix := many.Prefix(t)
	opts := calm(lock.Options{RetryDelay: 100 * time.Millisecond})
	l, holder := locker(t, many.Client(t), prefix, opts), locker(t, many.Client(t), prefix, opts)
	w := wait(t, l, holder, "key")
	name := recordOf(prefix, "key")
	heard(t, many.NodeOf(t, name).Admin(t), name, 1)
	still := func() {
		t.Helper()
		if err := w.held.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("Extend while the slot moves: got %v, want no error", err)
		}
		if _, err := locker(t, many.Client(t), prefix, opts).Try(t.Context(), "key"); err == nil {
			t.Error("Try by another while the slot moves: got a lock, want an error")
		}
	}
	from := many.NodeOf(t, name)
	to := many.MoveSlot(t, name, still)
	still()
	heard(t, to.Admin(t), name, 1)
	heard(t, from.Admin(t), name, 0)
	w.release(t)
}

// A user without the permissions for waking can wait as well. A locker tries once and is
// refused once, however many callers wait.
func TestARefusalIsNotRepeated(t *testing.T) {
	t.Parallel()
	one := redistest.NewStandalone(t)
	for name, rules := range map[string]string{
		"no channels":  redistest.Rules + " resetchannels",
		"no subscribe": redistest.Rules + " -subscribe",
		"no publish":   redistest.Rules + " -publish",
		"none":         redistest.Rules + " resetchannels -subscribe -publish -unsubscribe",
	} {
		admin, user := one.Admin(t), redistest.NewUser(t, rules, one)
		rdb := one.Client(t, func(o *redis.Options) { o.Username, o.DisableIdentity = user, true })
		prefix := one.Prefix(t)
		l := locker(t, rdb, prefix, calm(lock.Options{RetryDelay: 50 * time.Millisecond}))
		holder := locker(t, rdb, prefix, calm(lock.Options{}))
		refusals := func() (n int64) {
			log, err := admin.ACLLog(t.Context(), 100).Result()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range log {
				if e.Username == user {
					n += e.Count
				}
			}
			return n
		}
		for range 3 {
			var all []*waiting
			for i := range 10 {
				all = append(all, wait(t, l, holder, fmt.Sprint("key", i)))
			}
			inLine(t, l, 10)
			redistest.Await(t, soon, name+": a refusal", func() bool { return refusals() > 0 })
			for _, w := range all {
				w.release(t)
			}
		}
		if n := refusals(); n != 1 {
			t.Errorf("%s: got %d refusals, want 1", name, n)
		}
	}
}

// TestEachWakingPermissionIsNeeded takes one permission after the other from the
// documented line. A waiter is then not woken, or not any more.
func TestEachWakingPermissionIsNeeded(t *testing.T) {
	t.Parallel()
	one, many := redistest.NewStandalone(t), redistest.NewCluster(t)
	standalone := func(user string) redis.UniversalClient {
		return one.Client(t, func(o *redis.Options) { o.Username, o.Protocol = user, 3 })
	}
	cluster := func(user string) redis.UniversalClient {
		return many.Client(t, func(o *redis.ClusterOptions) { o.Username = user })
	}
	for right, client := range map[string]func(string) redis.UniversalClient{
		"+subscribe": standalone, "+unsubscribe": standalone, "+publish": standalone, "&neap:*": standalone,
		"+ssubscribe": cluster, "+sunsubscribe": cluster, "+spublish": cluster,
	} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			user := redistest.NewUser(t, redistest.Without(t, right), append([]*redistest.Server{one}, many.Nodes()...)...)
			for who, works := range map[string]bool{redistest.User: true, user: false} {
				prefix := redistest.Prefix(t)
				rdb := client(who)
				l, holder := locker(t, rdb, prefix, calm(lock.Options{RetryDelay: 100 * time.Millisecond})), locker(t, rdb, prefix, calm(lock.Options{}))
				stays := wait(t, l, holder, "stays")
				name := recordOf(prefix, "stays")
				server := one
				if _, ok := rdb.(*redis.ClusterClient); ok {
					server = many.NodeOf(t, name)
				}
				hears := func() bool {
					h, _ := server.Admin(t).HGet(t.Context(), name, "wake").Result()
					return h != "" && hearers(t, server.Admin(t), name) > 0
				}
				switch {
				case strings.Contains(right, "unsubscribe"):
					redistest.Await(t, soon, "the subscription", hears)
					other := "goes"
					for i := 0; server != one && many.NodeOf(t, recordOf(prefix, other)) != server; i++ {
						other = fmt.Sprint("goes", i)
					}
					goes := wait(t, l, holder, other)
					heard(t, server.Admin(t), recordOf(prefix, other), 1)
					goes.release(t)
					// One channel was unsubscribed. Messages of the other must still
					// arrive.
					redistest.Await(t, soon, "the end of a subscription", func() bool {
						return hearers(t, server.Admin(t), recordOf(prefix, other)) == 0
					})
					if hears() != works {
						t.Errorf("%s hears of the release: got %v, want %v", who, !works, works)
					}
				case works:
					redistest.Await(t, soon, "the subscription", hears)
				default:
					redistest.Await(t, soon, "a refusal", func() bool {
						log, _ := server.Admin(t).ACLLog(t.Context(), 100).Result()
						return slices.ContainsFunc(log, func(e *redis.ACLLogEntry) bool { return e.Username == user && e.Object != "client|setinfo" })
					})
					if h, _ := server.Admin(t).HGet(t.Context(), name, "wake").Result(); h != "" {
						t.Errorf("%s without %s: got the wake %q, want none", who, right, h)
					}
				}
				stays.release(t)
			}
		})
	}
}

// No waiter misses a release, in one process and in several, in whatever order it asks,
// subscribes and is released. By itself it would ask again only after an hour.
func TestNoReleaseIsMissed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for _, processes := range []int{1, 3} {
			var lockers []*lock.Locker
			for range processes {
				lockers = append(lockers, locker(t, rdb, prefix, unasking()))
			}
			var wg sync.WaitGroup
			for i := range 6 {
				l := lockers[i%processes]
				if i == 5 {
					l = l.As("owner") // each has a queue of its own
				}
				wg.Go(func() {
					for range redistest.Ops(500) {
						began := time.Now()
						if err := l.Do(t.Context(), "key", func(context.Context) error { return nil }); err != nil {
							t.Errorf("Do: got %v, want no error", err)
							return
						}
						if took := time.Since(began); took > 2*soon {
							t.Errorf("%d processes: Do took %v, want within %v", processes, took, 2*soon)
						}
					}
				})
			}
			wg.Wait()
		}
	})
}

// byValue is a client that cannot be compared, such as an interceptor.
type byValue struct {
	redis.UniversalClient
	_ []string
}

func TestAnyClientIsWoken(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		opts := unasking()
		var lockers [2]*lock.Locker
		for i := range lockers {
			l, err := lock.New(storetest.At(t, byValue{UniversalClient: rdb}, prefix), "test", opts)
			if err != nil {
				t.Fatal(err)
			}
			lockers[i] = l
		}
		var wg sync.WaitGroup
		for _, l := range lockers {
			wg.Go(func() {
				for range 50 {
					if err := l.Do(t.Context(), "key", func(context.Context) error { return nil }); err != nil {
						t.Errorf("Do: got %v, want no error", err)
					}
				}
			})
		}
		wg.Wait()
	})
}
