package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// TestTopHasTheNearestFirst compares what top says with what the API does.
func TestTopHasTheNearestFirst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		neap(t, p.with("top")...).wants(t, exitNot, "0 subjects asked about")
		both := p.limiter(t, limit.FixedWindow{Limit: 10, Window: time.Hour}, limit.SlidingLog{Limit: 20, Window: 2 * time.Hour})
		for i, n := range []int{3, 10, 0, 9, 5} {
			take(t, both, fmt.Sprintf("user-%d", i), n)
		}
		banning := p.limiter(t, limit.WithBan(limit.FixedWindow{Name: "login", Limit: 1, Window: time.Minute}, limit.Ban{After: 1, Within: time.Hour, For: 3 * time.Hour}))
		take(t, banning, "bob", 2)
		take(t, p.limiter(t, limit.KeepOnChange(limit.FixedWindow{Name: "kept", Limit: 1, Window: time.Hour})), "ann", 1)

		got := read[topPage](t, exitFound, p.with("top", "api")...)
		var order []string
		for _, line := range got.Subjects {
			order = append(order, line.Subject)
		}
		if want := []string{"bob", "user-1", "user-3", "user-4", "user-0"}; !slices.Equal(order, want) || got.Denied != 2 || got.Unread != 1 {
			t.Errorf("got %q of %+v, want %q, two denied and one unread", order, got, want)
		}
		for _, line := range got.Subjects[1:] {
			d, err := both.Peek(t.Context(), line.Subject)
			must(t, err)
			if line.Remaining != d.Remaining || line.Limit != d.Limit || line.Policy != d.Policy || line.Allowed != d.Allowed || line.Hashed {
				t.Errorf("got %+v, want %+v", line, d)
			}
		}
		if bob := got.Subjects[0]; !bob.Banned || bob.Allowed || bob.RetryAfter < 10_000_000 {
			t.Errorf("got %+v, want a ban of 3 hours", bob)
		}
		if c := got.Cost; !c.AllKeys || c.Subjects != 5 || c.Commands < 5 || c.Keys < 11 {
			t.Errorf("got the cost %+v, want that of 5 subjects", c)
		}
		neap(t, p.with("top", "--rows", "2")...).wants(t, exitFound, "bob", "user-1", "banned", "5 subjects asked about, 2 of them denied", "1 subject left out", "--policy")
		if got := read[topPage](t, exitFound, p.with("top", "--rows", "2")...); len(got.Subjects) != 2 {
			t.Errorf("got %+v, want 2 rows", got)
		}
		kept := read[topPage](t, exitFound, p.with("top", "api", "--policy", "window 1/1h kept name kept")...)
		if kept.Subjects[0].Subject != "ann" || kept.Subjects[0].Allowed || kept.Unread != 0 {
			t.Errorf("got %+v, want ann denied", kept)
		}
		neap(t, p.with("top", "web")...).wants(t, exitNot)
		neap(t, p.with("top", "--policy", "window 1/1h")...).wants(t, exitUsage)
		neap(t, p.with("top", "--rows", "0")...).wants(t, exitUsage)
	})
}

// TestTopLeavesOutWhatIsNotNeaps: a record that another program wrote does not hide the others.
func TestTopLeavesOutWhatIsNotNeaps(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), "neap", nil)
	take(t, p.limiter(t, limit.FixedWindow{Limit: 10, Window: time.Hour}), "ann", 3)
	text, list := "neap:limit:api:{bob}:window-10-1h", "neap:limit:api:{cid}:window-10-1h"
	must(t, srv.Admin(t).Set(t.Context(), text, "not a number", time.Hour).Err())
	neap(t, p.with("top")...).wants(t, exitFound, "ann", "1 subject left out", "bob under api", "neap reset")
	must(t, srv.Admin(t).LPush(t.Context(), list, "1").Err())
	if got := read[topPage](t, exitFound, p.with("top")...); len(got.Subjects) != 1 || len(got.Foreign) != 2 {
		t.Errorf("got %+v, want ann, and two subjects left out", got)
	}
	for _, subject := range []string{"bob", "cid"} {
		neap(t, p.with("reset", "api", subject, "-y")...).wants(t, exitFound)
	}
	if got := read[topPage](t, exitFound, p.with("top")...); len(got.Subjects) != 1 || len(got.Foreign) != 0 {
		t.Errorf("got %+v after a reset, want ann alone", got)
	}
}

// TestTopAsksReplicas has a replica answer all, and the master be asked only where its replicas are.
func TestTopAsksReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.NewStandalone(t)
	replica := redistest.NewReplica(t, master)
	p := at(t, master.Client(t), master.AdminURL(), master.Prefix(t), nil)
	l := p.limiter(t, everyPolicy...)
	take(t, l, "user", 5)
	redistest.Await(t, 30*time.Second, "the replica to have the keys", func() bool {
		return replica.Admin(t).DBSize(t.Context()).Val() == master.Admin(t).DBSize(t.Context()).Val() &&
			strings.Contains(master.Admin(t).Info(t.Context(), "replication").Val(), "state=online")
	})
	redistest.Await(t, time.Minute, "an answer of the replica alone, without a SCAN of the master", func() bool {
		redistest.ResetStats(t, master.Admin(t))
		got := read[topPage](t, exitFound, p.with("top")...)
		said := master.Admin(t).Info(t.Context(), "commandstats").Val()
		return got.Cost.Servers == 1 && got.Cost.Replicas == 1 && len(got.Subjects) == 1 && got.Subjects[0].Remaining == 15 &&
			!strings.Contains(said, "cmdstat_scan")
	})
	replica.Pause(t) // which the master does not know yet
	if got := read[topPage](t, exitFound, p.with("top")...); got.Cost.Replicas != 0 || len(got.Subjects) != 1 {
		t.Errorf("beside a replica that hangs: got %+v, want what the master says", got)
	}
}

// TestTopOnAReplicatedCluster asks the replicas of a cluster. They refuse scripts of a client that has not sent
// READONLY.
func TestTopOnAReplicatedCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewReplicatedCluster(t)
	all := slices.Clone(c.Nodes())
	for _, node := range c.Nodes() {
		all = append(all, c.ReplicaOf(node))
	}
	for _, s := range all { // a busy machine is no failover
		must(t, s.Admin(t).ConfigSet(t.Context(), "cluster-node-timeout", "60000").Err())
	}
	operator := "redis://" + redistest.NewUser(t, operatorRules(t), all...) + ":" + redistest.Password + "@" + all[0].Addr()
	if got := broken(t, operator); len(got) > 0 {
		t.Errorf("doctor as an operator: got %+v, want nothing broken", got)
	}
	p := at(t, c.Client(t), operator, "neap", nil)
	l := p.limiter(t, everyPolicy...)
	for i := range 9 {
		take(t, l, fmt.Sprintf("user-%d", i), 1+i)
	}
	var got topPage
	redistest.Await(t, 30*time.Second, "the replicas to have all", func() bool {
		got = read[topPage](t, exitFound, p.with("top")...)
		return len(got.Subjects) == 9 && got.Cost.Replicas == 3 && got.Subjects[0].Remaining == 11
	})
	for _, node := range c.Nodes() {
		for _, command := range []string{"keys", "monitor"} {
			for _, srv := range []*redistest.Server{node, c.ReplicaOf(node)} {
				if strings.Contains(srv.Admin(t).Info(t.Context(), "commandstats").Val(), "cmdstat_"+command+":") {
					t.Errorf("%s ran %s, want it never", srv.Addr(), command)
				}
			}
		}
	}
}

// TestTopIsBounded looks at no more keys than it may.
func TestTopIsBounded(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	_, err := srv.Admin(t).Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range 20_000 {
			pipe.Set(t.Context(), fmt.Sprintf("neap:limit:api:{user-%d}:window-5-1h", i), "1", time.Hour)
		}
		return nil
	})
	must(t, err)
	got := read[topPage](t, exitFound, "top", "--keys", "3000", "--url", srv.AdminURL())
	if c := got.Cost; c.Keys != 3000 || c.AllKeys || c.Subjects < 1000 || c.Subjects > 6000 || c.Commands > int64(2*c.Subjects) {
		t.Errorf("got the cost %+v, want that of some 3,000 keys", c)
	}
	neap(t, "top", "--keys", "3000", "--url", srv.AdminURL()).wants(t, exitFound, "about 3,000 keys looked at, and there are more: see --keys")
	got = read[topPage](t, exitFound, "top", "--keys", "100000", "--url", srv.AdminURL())
	if c := got.Cost; c.Keys != 20_000 || !c.AllKeys || c.Subjects != 20_000 {
		t.Errorf("got the cost %+v, want that of all keys", c)
	}
	neap(t, "peek", "api", "user-x", "--keys", "1000", "--url", srv.AdminURL()).wants(t, exitNot)
	neap(t, "ban", "api", "user-x", "--for", "1m", "--keys", "1000", "--url", srv.AdminURL()).wants(t, exitUsage, "there are more: see --keys")
}
