package inflight

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// slots is the model of the scripts on requests in flight: when each token's lease ends,
// in microseconds. Leases that have lapsed stay until the next grant.
type slots map[string]int64

func (s slots) count(now int64) (n int64) {
	for _, ends := range s {
		if ends > now {
			n++
		}
	}
	return n
}

func (s slots) acquire(now int64, token string, limit, lease int64, w witnesses) int64 {
	if live := s.count(now); live >= limit && s[token] <= now {
		for t, ends := range s {
			s[t] = min(ends, now+lease)
		}
		return -1 - live
	}
	lost := w[0] != "" && s[w[0]] <= now && s[w[1]] <= now
	s[token] = now + lease
	maps.DeleteFunc(s, func(_ string, ends int64) bool { return ends <= now })
	n := s.count(now)
	if lost {
		n += witnessesLost
	}
	return n
}

func (s slots) restore(now int64, token string, limit, lease int64, held []string) (n int64, there []bool) {
	live := s.count(now)
	if s[token] > now {
		live--
	}
	for _, h := range held {
		is := s[h] > now
		if !is && live < limit {
			is = true
			live++
		}
		if is {
			s[h] = now + lease
		}
		there = append(there, is)
	}
	maps.DeleteFunc(s, func(_ string, ends int64) bool { return ends <= now })
	if live >= limit || token == "" {
		delete(s, token)
		return -1 - live, there
	}
	s[token] = now + lease
	return live + 1, there
}

func (s slots) renew(now int64, token string, lease int64) int64 {
	if _, ok := s[token]; !ok {
		return 0
	}
	s[token] = now + lease
	return 1
}

func (s slots) release(token string) int64 {
	_, ok := s[token]
	delete(s, token)
	if ok {
		return 1
	}
	return 0
}

// run returns what a step answers, and changes the model.
func (s slots) run(st step, now, limit, lease int64) int64 {
	switch st.name {
	case "acquire":
		return s.acquire(now, st.token, limit, lease, st.witnesses)
	case "restore":
		n, there := s.restore(now, st.token, limit, lease, st.held)
		if !slices.Equal(there, st.there) {
			return math.MinInt64
		}
		return n
	case "renew":
		for i, token := range st.held {
			if (s.renew(now, token, lease) == 1) != st.there[i] {
				return math.MinInt64
			}
		}
		return 0
	case "release":
		return s.release(st.token)
	}
	return s.count(now)
}

// alive returns the leases that have not lapsed.
func (s slots) alive(now int64) slots {
	alive := maps.Clone(s)
	maps.DeleteFunc(alive, func(_ string, ends int64) bool { return ends <= now })
	return alive
}

// stored returns the leases in Redis.
func stored(t *testing.T, rdb redis.Cmdable, key string) slots {
	t.Helper()
	s := slots{}
	for _, z := range must(rdb.ZRangeWithScores(t.Context(), key, 0, -1).Result())(t) {
		s[z.Member.(string)] = int64(z.Score)
	}
	return s
}

func newTestLeases(t *testing.T, rdb script.Client, limit int64, lease time.Duration) *leases {
	t.Helper()
	return newLeases(ask.NewDecider(storetest.At(t, rdb, "neap"), 10*time.Second), limit, lease)
}

// step is one random call of a script, and what it answered.
type step struct {
	name, token string
	witnesses   witnesses
	held        []string
	n           int64
	there       []bool
}

// randomStep makes a step of one of the first kinds. A tenth of all steps restores slots.
func randomStep(t *testing.T, rng *rand.Rand, l *leases, key string, kinds int) step {
	t.Helper()
	own := rng.IntN(8)
	name := func(n int) string { return fmt.Sprintf("token-%d", (own+n)%8) }
	s := step{token: name(0)}
	if rng.IntN(2) == 0 {
		s.witnesses = witnesses{name(rng.IntN(8)), name(rng.IntN(8))}
	}
	call := func(name string, script *script.Script, args ...any) {
		s.name, s.n = name, must(l.run(t.Context(), script, key, args...))(t)
	}
	switch rng.IntN(kinds) {
	case 0, 1, 2, 3:
		call("acquire", acquireScript, s.token, l.limit, l.lease, l.longest, s.witnesses[0], s.witnesses[1])
	case 4, 5:
		var slots []*Slot
		for i := range 1 + rng.IntN(3) {
			s.held = append(s.held, name(i))
			slots = append(slots, &Slot{token: name(i)})
		}
		s.name, s.there = "renew", must(l.renew(key, slots))(t)
	case 6, 7:
		call("release", releaseScript, s.token)
	case 8:
		call("count", countScript)
	case 9:
		var held []*Slot
		for i := range rng.IntN(8) {
			s.held = append(s.held, name(i+1))
			held = append(held, &Slot{token: name(i + 1)})
		}
		if rng.IntN(2) == 0 {
			s.token = ""
		}
		n, denied, there, err := l.restore(t.Context(), key, s.token, held)
		if err != nil {
			t.Fatal(err)
		}
		if s.name, s.n, s.there = "restore", n, there; denied {
			s.n = -1 - n
		}
	}
	return s
}

// TestInflightEqualsModel runs acquire, restore, renew, release and count with 8 tokens
// on a clock that the test sets, mostly at the ends of leases. Now and then the limit
// changes, as in a rolling deploy, and the clock is set back.
func TestInflightEqualsModel(t *testing.T) {
	t.Parallel()
	m, rdb := redistest.Miniredis(t)
	rng := redistest.Rand(t)
	const perKey = 200
	denied := 0
	for i := range max(redistest.Steps(50_000)/perKey, 1) {
		now := time.Date(2026, 11, 20, 8, 0, 0, rng.IntN(1e6)*1000, time.UTC)
		lease := time.Duration(10+rng.IntN(100_000)) * time.Millisecond
		limit := 1 + rng.Int64N(5)
		l := newTestLeases(t, rdb, limit, lease)
		key, model := fmt.Sprintf("{inflight%d}", i), slots{}
		var gone time.Time // when the set's own time to live ends, which a clock set back puts off
		var history []step
		for range perKey {
			switch rng.IntN(12) {
			case 0, 1, 2:
				now = now.Add(time.Duration(rng.Int64N(int64(lease))).Truncate(time.Microsecond))
			case 3, 4: // to the end of a lease, or a microsecond before
				for _, ends := range model.alive(now.UnixMicro()) {
					now = time.UnixMicro(ends - rng.Int64N(2)).UTC()
					break
				}
			case 5:
				limit = 1 + rng.Int64N(5)
				l = newTestLeases(t, rdb, limit, lease)
			case 6:
				if rng.IntN(20) == 0 {
					back := time.Duration(rng.Int64N(int64(3 * lease))).Truncate(time.Microsecond)
					now, gone = now.Add(-back), gone.Add(-back)
				}
			}
			m.SetTime(now)
			if !now.Before(gone) {
				clear(model)
			}
			before := maps.Clone(model)
			st := randomStep(t, rng, l, key, 10)
			history = append(history, st)
			if st.n < 0 {
				denied++
			}
			want := model.run(st, now.UnixMicro(), limit, lease.Microseconds())
			if st.name == "acquire" && st.n >= 0 || st.name == "renew" && slices.Contains(st.there, true) || st.n < 0 && !maps.Equal(before, model) ||
				st.name == "restore" {
				gone = now.Add(lease + time.Millisecond)
			}
			if got := stored(t, rdb, key); st.n != want || !maps.Equal(got, model) {
				t.Fatalf("limit %d, lease %v, at %d: got %+v, want %d\nleases %v\nwant   %v\nbefore %v\nafter %+v",
					limit, lease, now.UnixMicro(), st, want, got, model, before, history)
			}
			if len(model) > 0 && m.TTL(key) <= 0 {
				t.Fatalf("got leases without a time to live after %+v, want one", st)
			}
		}
	}
	if denied == 0 {
		t.Error("got no denial in all steps, want some")
	}
}

// TestInflightEqualsModelOnRealRedis does the same by the server's own clock. If a script
// wrote a lease, the lease shows when it ran. Any other script ran between two readings
// of the clock.
func TestInflightEqualsModelOnRealRedis(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	client := &redistest.TimedClient{Admin: srv.Admin(t)}
	prefix := srv.Prefix(t)
	rng := redistest.Rand(t)
	const perKey = 100
	denied := 0
	for i := range max(redistest.Steps(50_000)/perKey, 1) {
		limit, lease := 1+rng.Int64N(5), time.Duration(1+rng.IntN(20))*time.Millisecond
		if i%2 == 0 {
			lease = time.Hour // on a slow machine, the shorter ones lapse before any is denied
		}
		l := newTestLeases(t, client, limit, lease)
		key, model := fmt.Sprintf("%s:{%d}", prefix, i), slots{}
		for range perKey {
			st := randomStep(t, rng, l, key, 9)
			got := stored(t, client.Admin, key)
			written := st.token
			renewed := slices.Index(st.there, true)
			if renewed >= 0 {
				written = st.held[renewed]
			}
			switch {
			case st.name == "acquire" && st.n >= 0, renewed >= 0:
				now, ok := got[written]
				if now -= lease.Microseconds(); !ok {
					now = client.Before // it lapsed before it could be read
				}
				if now < client.Before || now > client.After {
					t.Fatalf("%+v: got TIME %d, want from %d to %d", st, now, client.Before, client.After)
				}
				if !ok {
					model = slots{}
					continue
				}
				if want := model.run(st, now, limit, lease.Microseconds()); want != st.n {
					t.Fatalf("limit %d, lease %v: got %+v, want %d of %v", limit, lease, st, want, model)
				}
				if !maps.Equal(got.alive(client.After), model.alive(client.After)) {
					t.Fatalf("%+v: got the leases %v left, want %v", st, got, model)
				}
			case st.name == "acquire":
				denied++
				if live := -1 - st.n; live < limit || live > model.count(client.Before) || live < model.count(client.After) ||
					model[st.token] > client.After {
					t.Fatalf("limit %d: got the denial %+v, want one that the model %v explains", limit, st, model)
				}
			case st.name == "count":
				if st.n > model.count(client.Before) || st.n < model.count(client.After) {
					t.Fatalf("got the count %+v, want from %d to %d of the model %v",
						st, model.count(client.After), model.count(client.Before), model)
				}
			default: // the token had no slot, or gave it back
				if model[st.token] > client.After && st.n == 0 {
					t.Fatalf("%+v: got 0, want 1: the token has a slot in the model %v", st, model)
				}
				delete(model, st.token)
			}
		}
	}
	if denied == 0 {
		t.Error("got no denial in all steps, want some")
	}
}

// counted returns how many requests of the subject s are in flight.
func counted(t *testing.T, c *Limiter) int64 {
	t.Helper()
	return must(c.InFlight(context.Background(), "s"))(t)
}
