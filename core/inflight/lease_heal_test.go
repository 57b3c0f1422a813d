package inflight

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

const (
	holderSlots = 3
	holderLease = 5 * time.Second
)

// holder is a child process that holds slots until it is killed.
func holder(words []string) {
	c, err := New(storetest.Child(words[0], words[1]), "c", holderSlots, &Options{
		Budget: 5 * time.Second, Lease: holderLease, Fail: store.FailClosed,
	})
	if err != nil {
		panic(err)
	}
	for range holderSlots {
		if s, err := c.Try(context.Background(), "s"); err != nil || !s.Allowed {
			panic(fmt.Sprint(s, err))
		}
	}
	fmt.Println("held")
	_, _ = fmt.Scanln()
}

// TestSIGKILLGivesSlotsBack kills a process that holds all slots and has renewed them.
// The slots are free after their leases have ended, and not before.
func TestSIGKILLGivesSlotsBack(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb, prefix := srv.Admin(t), srv.Prefix(t)
	p := redistest.StartChild(t, "holder", srv.Addr(), prefix)
	if line := p.Line(t); line != "held" {
		t.Fatalf("the holder process: got the line %q, want \"held\"", line)
	}
	c := strict(t, rdb, prefix, holderSlots, holderLease)
	key := c.space.Key("s", c.tail)
	began := redistest.Time(t, rdb)
	redistest.Await(t, time.Minute, "leases to be renewed beyond two of them", func() bool {
		if n := counted(t, c); n != holderSlots {
			t.Fatalf("got %d in flight while the holder renews them, want %d", n, holderSlots)
		}
		return redistest.Time(t, rdb).Sub(began) > 2*holderLease
	})
	p.Kill()
	killed := redistest.Time(t, rdb)
	var first, last int64
	for _, ends := range stored(t, rdb, key) {
		last = max(last, ends)
		if first == 0 || ends < first {
			first = ends
		}
	}
	if left := last - killed.UnixMicro(); left <= 0 || left > holderLease.Microseconds() {
		t.Fatalf("got %d µs left of the last lease, want above 0 and at most %d", left, holderLease.Microseconds())
	}
	redistest.Await(t, time.Minute, "a slot", func() bool {
		s := acquire(t, c, "s")
		now := redistest.Time(t, rdb).UnixMicro()
		if s.Allowed && now < first {
			t.Fatalf("got a slot %d µs before its lease ends, want none before", first-now)
		}
		if s.Allowed {
			t.Cleanup(func() { _ = s.Release(context.Background()) })
		}
		return s.Allowed
	})
	t.Logf("a slot was free %v after the kill", redistest.Time(t, rdb).Sub(killed))
	redistest.Await(t, time.Minute, "the last lease to end", func() bool { return redistest.Time(t, rdb).UnixMicro() >= last })
	for range holderSlots - 1 {
		holds(t, c, "s")
	}
	if acquire(t, c, "s").Allowed {
		t.Errorf("got a slot while %d of %d are held, want a denial", holderSlots, holderSlots)
	}
}

// TestLeasesHealAfterTheClock sets the server's clock back by a day. Leases that end in
// the future then end no later than if they had begun now.
func TestLeasesHealAfterTheClock(t *testing.T) {
	t.Parallel()
	m, rdb := redistest.Miniredis(t)
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	m.SetTime(now)
	l := newTestLeases(t, rdb, 2, time.Minute)
	try := func(at time.Time, token string, want int64) {
		t.Helper()
		m.SetTime(at)
		n, denied, _, err := l.acquire(t.Context(), "{k}", token, witnesses{})
		if denied {
			n = -n
		}
		if err != nil || n != want {
			t.Errorf("the acquire of %s: got %d, %v, want %d", token, n, err, want)
		}
	}
	try(now, "a", 1)
	try(now, "b", 2)
	now = now.Add(-24 * time.Hour)
	try(now, "c", -2)
	try(now.Add(time.Minute-time.Microsecond), "c", -2)
	try(now.Add(time.Minute), "c", 1)
}

// TestLeasesHealTheirTimeToLive removes or lengthens the time to live. The next call
// repairs it, whether granted or denied.
func TestLeasesHealTheirTimeToLive(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for limit := int64(1); limit <= 2; limit++ { // denied, granted
			c := strict(t, rdb, fmt.Sprint(prefix, limit), limit, time.Minute)
			key := c.space.Key("s", c.tail)
			holds(t, c, "s")
			for harm, do := range map[string]func() error{
				"persist":  func() error { return admin.Persist(t.Context(), key).Err() },
				"lengthen": func() error { return admin.PExpire(t.Context(), key, 24*time.Hour).Err() },
			} {
				if err := do(); err != nil {
					t.Fatal(err)
				}
				s := acquire(t, c, "s")
				if ttl := admin.PTTL(t.Context(), key).Val(); s.Allowed != (limit == 2) || ttl <= 0 || ttl > time.Minute+time.Millisecond {
					t.Errorf("%s, limit %d: got %+v and leases that live for %v, want allowed %t and up to 1m",
						harm, limit, told(s), ttl, limit == 2)
				}
				gives(t, s)
			}
		}
	})
}

// TestAFullServerRenewsSlots, so none lapses whose process lives.
func TestAFullServerRenewsSlots(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
	admin := srv.Admin(t)
	c := strict(t, srv.Client(t), srv.Prefix(t), 2, 15*time.Second)
	holds(t, c, "s")
	must(admin.ConfigSet(t.Context(), "maxmemory", "1").Result())(t)
	ends := func() (end float64) {
		for _, z := range must(admin.ZRangeWithScores(t.Context(), c.space.Key("s", c.tail), 0, 0).Result())(t) {
			end = z.Score
		}
		return end
	}
	first := ends()
	redistest.Await(t, 2*time.Minute, "a renewal", func() bool { return ends() > first })
}
