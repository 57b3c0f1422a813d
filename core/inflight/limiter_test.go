package inflight

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// strict are options with which Redis alone decides, with enough time for a busy machine.
func strict(t testing.TB, rdb script.Client, prefix string, limit int64, lease time.Duration) *Limiter {
	t.Helper()
	opts := &Options{Budget: 5 * time.Second, Lease: lease, Fail: store.FailClosed}
	return must(New(storetest.At(t, rdb, prefix), "c", limit, opts))(t)
}

func acquire(t testing.TB, c *Limiter, subject string) *Slot {
	t.Helper()
	return must(c.Try(context.Background(), subject))(t)
}

// holds acquires a slot that must be granted, and releases it at the end of the test.
func holds(t testing.TB, c *Limiter, subject string) *Slot {
	t.Helper()
	s := acquire(t, c, subject)
	if !s.Allowed {
		t.Fatalf("a try by %s: got a denial %+v, want a slot", subject, told(s))
	}
	t.Cleanup(func() { _ = s.Release(context.Background()) })
	return s
}

func gives(t testing.TB, s *Slot) {
	t.Helper()
	if err := s.Release(context.Background()); err != nil {
		t.Errorf("a release: got %v, want no error", err)
	}
}

func TestSlotsAreCounted(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		c := strict(t, rdb, prefix, 3, time.Hour)
		var held []*Slot
		for i := range int64(3) {
			s := holds(t, c, "s")
			want := figures{Allowed: true, Policy: "inflight", Limit: 3, Remaining: 2 - i}
			if told(s) != want {
				t.Errorf("slot %d: got %+v, want %+v", i, told(s), want)
			}
			held = append(held, s)
		}
		before := redistest.Dump(t, admin, prefix)
		hence := redistest.Dumped{Values: before.Values, Expires: []time.Time{time.Now().Add(time.Hour)}}
		if !regexp.MustCompile(`^`+prefix+`:inflight:c:\{s\}:1h zset .*\n$`).MatchString(before.Values) || !before.Is(hence) {
			t.Errorf("after three slots: got the state %v, want one sorted set of the subject that lives for an hour", before)
		}
		for range 3 {
			s := acquire(t, c, "s")
			want := figures{Policy: "inflight", Limit: 3, RetryAfter: time.Second}
			if told(s) != want {
				t.Errorf("a fourth slot of 3: got %+v, want %+v", told(s), want)
			}
			gives(t, s)
		}
		if n := counted(t, c); n != 3 || c.Stats().InFlight != 3 {
			t.Errorf("got %d in flight and %d of this process, want 3 of each", n, c.Stats().InFlight)
		}
		if after := redistest.Dump(t, admin, prefix); !after.Is(before) {
			t.Errorf("after three denials: got the state\n%v\nwant it as before:\n%v", after, before)
		}
		if s := holds(t, c, "other"); s.Remaining != 2 {
			t.Errorf("a slot of another subject: got %+v, want 2 remaining", told(s))
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 3 { // the first alone counts, and does not end with its context
			if err := held[0].Release(ended); err != nil {
				t.Errorf("a release whose context has ended: got %v, want no error", err)
			}
		}
		if n := counted(t, c); n != 2 {
			t.Errorf("got %d in flight after one of 3 was released, want 2", n)
		}
		if s := holds(t, c, "s"); s.Remaining != 0 {
			t.Errorf("the slot in place of the released one: got %+v, want 0 remaining", told(s))
		}
		want := Stats{Allowed: 5, Denied: 3, InFlight: 4}
		if got := c.Stats(); got != want {
			t.Errorf("got stats %+v, want %+v", got, want)
		}
	})
}

// TestNeverMoreInFlight has 64 goroutines on 8 clients hold slots: as many at once as the
// limit, and never more.
func TestNeverMoreInFlight(t *testing.T) {
	t.Parallel()
	redistest.EachReal(t, func(t *testing.T, connect func() redis.UniversalClient, prefix string) {
		const limit = 7
		var clients []*Limiter
		for range 8 {
			clients = append(clients, strict(t, connect(), prefix, limit, time.Minute))
		}
		var held, most, granted, denied atomic.Int64
		full := make(chan struct{}) // closed when as many as may be are held
		var once sync.Once
		var wg sync.WaitGroup
		for g := range 64 {
			wg.Go(func() {
				for i := range redistest.Ops(1000) {
					s, err := clients[(g+i)%len(clients)].Try(t.Context(), "s")
					if err != nil {
						t.Errorf("a try by goroutine %d: got %v, want no error", g, err)
						return
					}
					if !s.Allowed {
						denied.Add(1)
						continue
					}
					granted.Add(1)
					n := held.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); {
						m = most.Load()
					}
					if n == limit {
						once.Do(func() { close(full) })
					}
					select {
					case <-full:
					case <-time.After(20 * time.Second):
						t.Errorf("got fewer than %d slots held at once for 20s, want as many as the limit", limit)
					}
					held.Add(-1)
					if err := s.Release(t.Context()); err != nil {
						t.Errorf("a release by goroutine %d: got %v, want no error", g, err)
					}
				}
			})
		}
		wg.Wait()
		if most.Load() != limit || denied.Load() == 0 {
			t.Errorf("got %d in flight at once, want %d; got %d granted and %d denied, want some denied",
				most.Load(), limit, granted.Load(), denied.Load())
		}
		if n := counted(t, clients[0]); n != 0 {
			t.Errorf("got %d in flight after all releases, want 0", n)
		}
		for _, c := range clients {
			if n := len(c.held.n); n != 0 {
				t.Errorf("after all releases: got %d subjects still stored, want 0", n)
			}
		}
	})
}

func TestWithoutASubject(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	c := strict(t, rdb, "p", 1, 0)
	if s, err := c.Try(t.Context(), ""); s != nil || !errors.Is(err, ErrSubject) {
		t.Errorf("a try without a subject: got %+v, %v, want no slot and ErrSubject", s, err)
	}
	if _, err := c.InFlight(t.Context(), ""); !errors.Is(err, ErrSubject) {
		t.Errorf("a count without a subject: got %v, want ErrSubject", err)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	for name, c := range map[string]struct {
		rdb   script.Client
		name  string
		limit int64
		opts  *Options
		want  []string
	}{
		"limit 0":         {rdb, "n", 0, nil, []string{"limit is 0", "from 1 to 100000"}},
		"too high":        {rdb, "n", maxLimit + 1, nil, []string{"limit is 100001"}},
		"name":            {rdb, "a:b", 1, nil, []string{"name", "1 to 64"}},
		"budget":          {rdb, "n", 1, &Options{Budget: -1}, []string{"Budget is -1ns: use 1ms to 1h0m0s"}},
		"mode":            {rdb, "n", 1, &Options{Fail: store.FailClosed + 1}, []string{"Fail is 3"}},
		"short lease":     {rdb, "n", 1, &Options{Lease: 9 * time.Millisecond}, []string{"Lease is 9ms: use 10ms to 24h0m0s"}},
		"all of it wrong": {nil, "", -1, &Options{Lease: -1, Budget: -1}, []string{"limit", "name", "Lease", "Budget", "rdb"}},
	} {
		_, err := New(c.rdb, c.name, c.limit, c.opts)
		for _, want := range append(c.want, "inflight.New: ") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got the error %v, want one that says %q", name, err, want)
			}
		}
	}
	if _, err := NewLocal("", 1, nil); err == nil || !strings.Contains(err.Error(), "inflight.NewLocal: name") {
		t.Errorf("NewLocal with an empty name: got %v, want an error about the name", err)
	}
}

func TestOneCallEach(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	rdb, admin := srv.Client(t), srv.Admin(t)
	c := strict(t, rdb, srv.Prefix(t), 1, time.Hour)
	if err := c.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	redistest.ResetStats(t, admin)
	s := holds(t, c, "s")
	acquire(t, c, "s")
	counted(t, c)
	gives(t, s)
	if stats := redistest.CommandStats(t, admin); stats["evalsha"].Calls != 4 || stats["eval"].Calls != 0 {
		t.Errorf("4 calls sent %+v, want 4 EVALSHA and no EVAL", stats)
	}
}

func TestInThisProcess(t *testing.T) {
	t.Parallel()
	c := must(NewLocal("local", 2, nil))(t)
	a := holds(t, c, "s")
	if b := holds(t, c, "s"); b.Remaining != 0 || a.Remaining != 1 || a.Degraded {
		t.Errorf("got %+v and then %+v, want 1 remaining, not degraded, and then 0", told(a), told(b))
	}
	if s := acquire(t, c, "s"); s.Allowed || s.RetryAfter != time.Second || counted(t, c) != 2 {
		t.Errorf("a third slot of 2: got %+v, want a denial with RetryAfter 1s, and 2 in flight", told(s))
	}
	gives(t, a)
	gives(t, a)
	holds(t, c, "s")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := c.Try(gone, "s"); s != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("a try with a canceled context: got %+v, %v, want no slot and context.Canceled", s, err)
	}
	if err := c.Warm(t.Context()); err != nil {
		t.Errorf("Warm: got %v, want no error", err)
	}
	if got, want := c.Stats(), (Stats{Allowed: 3, Denied: 1, Canceled: 1, InFlight: 2}); got != want || c.Name() != "local" {
		t.Errorf("got stats %+v of %q, want %+v of \"local\"", got, c.Name(), want)
	}
}

func TestWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		var seen []store.Event
		var rdb redistest.AbsentClient
		rdb.Gone.Store(true)
		st := storetest.At(t, &rdb, "p")
		st.Observe(func(_ context.Context, e store.Event) {
			if e.Primitive == store.InFlight {
				seen = append(seen, e)
			}
		})
		c := must(New(st, "dead", 2, &Options{Fail: mode}))(t)
		granted := 0
		for range 3 {
			s, err := c.Try(t.Context(), "s")
			var failure *script.Error
			switch {
			case mode == store.FailClosed && (s != nil || !errors.As(err, &failure)):
				t.Errorf("a try without Redis under store.FailClosed: got %+v, %v, want no slot and a script.Error", s, err)
			case mode == store.FailClosed:
			case err != nil || !s.Degraded || !errors.As(s.Cause, &failure):
				t.Errorf("a try without Redis under %v: got %+v, %v, want a degraded slot with a script.Error",
					mode, s, err)
			case s.Allowed:
				granted++
				t.Cleanup(func() { _ = s.Release(context.Background()) })
			}
		}
		if want := map[store.FailMode]int{store.FailLocal: 2, store.FailOpen: 3}[mode]; granted != want || c.Stats().InFlight != want {
			t.Errorf("%v: got %d granted and stats %+v, want %d granted and in flight", mode, granted, c.Stats(), want)
		}
		for _, o := range seen {
			class := o.Class == script.ErrNotExecuted || o.Class == script.ErrMaybeExecuted
			if o.Name != "dead" || o.Cost != 1 || !class || strings.Contains(fmt.Sprint(o), "secret") {
				t.Errorf("%v: got the event %+v, want name dead, cost 1, a class of no answer, and no secret", mode, o)
			}
		}
		if len(seen) != 3 {
			t.Errorf("%v: got %d events, want 3", mode, len(seen))
		}
	}
}

// TestFailLocalCountsWhatRedisGranted: if Redis is gone, the slots that this process
// already holds leave less room.
func TestFailLocalCountsWhatRedisGranted(t *testing.T) {
	t.Parallel()
	_, client := redistest.Miniredis(t)
	rdb := &redistest.AbsentClient{Processor: client}
	c := must(New(rdb, "c", 2, &Options{Budget: 5 * time.Second}))(t)
	first := holds(t, c, "s")
	rdb.Gone.Store(true)
	if s := holds(t, c, "s"); !s.Degraded || first.Degraded || s.Remaining != 0 {
		t.Errorf("slot 2, without Redis: got %+v, want it degraded with 0 remaining, and slot 1 not (%t)",
			told(s), first.Degraded)
	}
	if s := acquire(t, c, "s"); s.Allowed || !s.Degraded || s.RetryAfter != time.Second {
		t.Errorf("a third slot of 2 without Redis: got %+v, want a degraded denial with RetryAfter 1s", told(s))
	}
	rdb.Gone.Store(false)
	gives(t, first)
	if s := acquire(t, c, "s"); !s.Allowed || s.Degraded {
		t.Errorf("a slot after Redis is back: got %+v, want it granted by Redis", told(s))
	} else {
		gives(t, s)
	}
}

// TestAFractionOfAMillisecondIsDropped, so a lease with such a fraction has the same keys
// as the lease without it.
func TestAFractionOfAMillisecondIsDropped(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	c := must(New(rdb, "n", 1, &Options{Lease: time.Second + 1}))(t)
	if c.opts.Lease != time.Second || c.tail != "1s" {
		t.Errorf("a lease of 1.000000001s: got %v with keys that end in %s, want 1s", c.opts.Lease, c.tail)
	}
}

// figures are what a slot tells.
type figures struct {
	Allowed          bool
	Policy           string
	Limit, Remaining int64
	RetryAfter       time.Duration
	Degraded         bool
	Cause            error
}

func told(s *Slot) figures {
	return figures{s.Allowed, s.Policy, s.Limit, s.Remaining, s.RetryAfter, s.Degraded, s.Cause}
}
