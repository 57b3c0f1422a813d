package inflight

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/lease"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestLostLeaseIsTakenAgain takes a holder's lease away, as if its process had slept. The
// holder takes a slot again if one is free, and otherwise goes on without one.
func TestLostLeaseIsTakenAgain(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		const lease = 6 * time.Second
		c, rival := strict(t, rdb, prefix, 1, lease), strict(t, rdb, prefix, 1, lease)
		key := c.space.Key("s", c.tail)
		s := holds(t, c, "s")
		must(admin.Del(t.Context(), key).Result())(t)
		redistest.Await(t, time.Minute, "the slot to be taken again", func() bool { return counted(t, c) == 1 })
		other := taken(t, admin, rival, key)
		began := time.Now()
		redistest.Await(t, time.Minute, "two leases to pass", func() bool {
			if n := counted(t, c); n != 1 {
				t.Fatalf("after the renewal: got %d in flight beside the rival's slot, want 1", n)
			}
			return time.Since(began) > 2*lease
		})
		gives(t, other)
		redistest.Await(t, time.Minute, "the slot to be taken again", func() bool { return counted(t, c) == 1 })
		gives(t, s)
		free(t, c, 5*time.Second) // what was on its way is given back too
	})
}

// taken takes the only slot away from its holder.
func taken(t *testing.T, admin redis.UniversalClient, c *Limiter, key string) (s *Slot) {
	t.Helper()
	redistest.Await(t, 10*time.Second, "the slot", func() bool {
		must(admin.Del(t.Context(), key).Result())(t)
		s = acquire(t, c, "s")
		return s.Allowed
	})
	return s
}

// TestLocalSlotIsCountedByRedisLater: a request that was admitted during an outage and
// still runs takes a slot when Redis is back.
func TestLocalSlotIsCountedByRedisLater(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, client, _ redis.UniversalClient, prefix string) {
		rdb := &redistest.AbsentClient{Processor: client}
		rdb.Gone.Store(true)
		c := must(New(storetest.At(t, rdb, prefix), "c", 1, &Options{Budget: 5 * time.Second}))(t)
		s := holds(t, c, "s")
		if !s.Degraded {
			t.Fatalf("a try while Redis is away: got %+v, want it degraded", told(s))
		}
		rdb.Gone.Store(false)
		redistest.Await(t, 9*time.Second, "Redis to count it, before a third of a lease has passed", func() bool {
			n, err := c.InFlight(t.Context(), "s")
			return err == nil && n == 1
		})
		gives(t, s)
		free(t, strict(t, client, prefix, 1, 0), 5*time.Second)
	})
}

// TestAReleaseDuringARenewalLeavesNothing: a renewal that arrives after the release takes
// no slot again, although the slot is gone. Other slots that it finds gone are taken again,
// all by one call.
func TestAReleaseDuringARenewalLeavesNothing(t *testing.T) {
	t.Parallel()
	_, client := redistest.Miniredis(t)
	rdb := &redistest.HookedClient{Processor: client}
	c := strict(t, rdb, "p", 10, time.Hour)
	var all []*lease.Member
	var held []string
	for range 5 {
		s := holds(t, c, "s")
		all, held = append(all, &s.member), append(held, s.token)
	}
	s := all[0].Of.(*Slot)
	var calls []string
	overtake := func(cmd redis.Cmder) {
		sha := fmt.Sprint(redistest.Write(cmd)[1])
		if cmd.Name() != "evalsha" { // the server did not know the script yet
			return
		}
		if calls = append(calls, sha); sha == renewScript.SHA() {
			gives(t, s)
			must(client.Del(t.Context(), s.key).Result())(t)
		}
	}
	rdb.Before.Store(&overtake)
	renewed{c}.Renew(s.key, all)
	if want := []string{renewScript.SHA(), releaseScript.SHA(), restoreScript.SHA()}; !slices.Equal(calls, want) {
		t.Errorf("a renewal beside which the slots are lost and one is released: got the calls %q, want a renewal, a release and one that restores: %q", calls, want)
	}
	slices.Sort(held[1:])
	stored := must(client.ZRange(t.Context(), s.key, 0, -1).Result())(t)
	if slices.Sort(stored); !slices.Equal(stored, held[1:]) || c.Stats().Undoing > 0 {
		t.Errorf("afterwards: got the slots %q in flight and %d to be given back, want %q alone", stored, c.Stats().Undoing, held[1:])
	}
	for _, m := range all[1:] {
		if counted, _ := c.held.look(m.Of.(*Slot)); m.Result != lease.Renewed || !counted {
			t.Errorf("a slot that was lost: got the result %d and counted: %t, want %d and true", m.Result, counted, lease.Renewed)
		}
	}
}

// TestReleaseBesideALeaseTakenAgain releases a slot while its lost lease is being taken
// again. The new lease is given back too.
func TestReleaseBesideALeaseTakenAgain(t *testing.T) {
	t.Parallel()
	_, client := redistest.Miniredis(t)
	rdb := &redistest.HookedClient{Processor: client}
	c := strict(t, rdb, "p", 1, 15*time.Second)
	s := holds(t, c, "s")
	entered, released := make(chan struct{}, 16), make(chan struct{})
	var releases atomic.Int64
	stall := func(cmd redis.Cmder) {
		switch fmt.Sprint(cmd.Args()[1]) {
		case restoreScript.SHA():
			entered <- struct{}{}
			<-released
		case releaseScript.SHA():
			releases.Add(1)
		}
	}
	rdb.Before.Store(&stall)
	must(client.Del(t.Context(), c.space.Key("s", c.tail)).Result())(t)
	<-entered
	gives(t, s)
	close(released)
	redistest.Await(t, 10*time.Second, "the new lease to be given back", func() bool { return releases.Load() == 2 })
	free(t, c, 10*time.Second)
}
