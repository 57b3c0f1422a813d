package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/internal/redistest"
)

// leaveInDoubt begins a run of each key, and ends it without saying how far it came.
func leaveInDoubt(t *testing.T, p place, name string, keys ...string) {
	t.Helper()
	guard, err := idempotency.New(p.store, name, idempotency.Reject{}, nil)
	must(t, err)
	for _, key := range keys {
		run, err := guard.Begin(t.Context(), key, "")
		must(t, err)
		must(t, run.Claim.Conclude(t.Context(), idempotency.Unknown()))
	}
}

// keysOf are the keys of a page, sorted.
func keysOf(page doubtPage) (keys []string) {
	for _, l := range page.Records {
		keys = append(keys, l.Name+" "+l.Key)
	}
	slices.Sort(keys)
	return keys
}

// TestGuardDoubt lists what is in doubt and what a dead process left, and nothing else.
func TestGuardDoubt(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, p place, admin redis.UniversalClient) {
		neap(t, p.with("guard", "doubt")...).wants(t, exitNot, "0 records in doubt, and 0 pending whose process is gone.", "Cost: all keys looked at")
		of := gate.IdempotencyScope("user=al", "POST", "/o", "8e03978e")
		long := gate.IdempotencyScope("header:x-account=alice", "POST", "/orders", strings.Repeat("k", 64))
		leaveInDoubt(t, p, "pay", "m17", of, long)
		leaveInDoubt(t, p, "mail", "m18")
		pay, err := idempotency.New(p.store, "pay", idempotency.Reject{}, nil)
		must(t, err)
		running, err := pay.Begin(t.Context(), "running", "")
		must(t, err)
		for i := range 40 {
			done, err := pay.Begin(t.Context(), fmt.Sprint("done-", i), "")
			must(t, err)
			must(t, done.Claim.Conclude(t.Context(), idempotency.DoneWith([]byte("a result"))))
		}
		prefix := p.flags[3]
		past := time.Now().Add(-time.Hour)
		must(t, admin.Set(t.Context(), prefix+":guard:pay:{dead}", fmt.Sprintf("pending %d 2 %d 30000 owner -\n", past.UnixMicro(), past.UnixMilli()), time.Hour).Err())
		must(t, admin.Set(t.Context(), prefix+":guard:pay:{broken}", "no record", time.Hour).Err())

		got := read[doubtPage](t, exitFound, p.with("guard", "doubt")...)
		hashed := ""
		for _, l := range got.Records {
			if l.Hashed {
				hashed = l.Key
			}
		}
		if want := []string{"mail m18", "pay " + hashed, "pay " + of, "pay dead", "pay m17"}; !slices.Equal(keysOf(got), slices.Sorted(slices.Values(want))) || hashed == "" || got.InDoubt != 4 || got.Gone != 1 {
			t.Errorf("got %+v, want %q: 4 in doubt, 1 of a process that is gone", got, want)
		}
		if want := []whose{{"pay", "broken"}}; !slices.Equal(got.Foreign, want) || !got.Cost.AllKeys || got.Cost.Records < 47 {
			t.Errorf("got %+v left out, and the cost %+v, want %+v, and all keys looked at", got.Foreign, got.Cost, want)
		}
		first := got.Records[0] // the oldest
		if want := (doubtLine{Name: "pay", Key: "dead", State: "pending", Attempt: 2, Fence: past.UnixMicro(), Age: first.Age, Expires: first.Expires}); first != want || first.Age < 3_590_000 || first.Age > 3_900_000 || first.Expires < 1 {
			t.Errorf("got %+v, want %+v, and the age of an hour", first, want)
		}
		for _, l := range got.Records[1:] {
			want := scope{}
			if l.Key == of {
				want = scope{"user=al", "POST", "/o", "8e03978e"}
			}
			if l.scope != want || l.State != string(idempotency.Doubtful) || l.Age > 600_000 || l.Expires < 1 {
				t.Errorf("got %+v, want the scope %+v, in doubt since now", l, want)
			}
			neap(t, p.with("guard", "resolve", l.Name, l.Key, "--nothing-done", "-y")...).wants(t, exitFound)
		}
		neap(t, p.with("guard", "doubt", "pay")...).wants(t, exitFound, "pending, and its process is gone", "0 records in doubt, and 1 pending", "1 key left out")
		neap(t, p.with("guard", "doubt", "mail")...).wants(t, exitNot)
		answering(t, "y\n", p.with("guard", "forget", "pay", "broken")...).wants(t, exitFound, "broken is unreadable. Forget it", "broken is forgotten.")
		if got := read[doubtPage](t, exitFound, p.with("guard", "doubt", "pay")...); len(got.Foreign) > 0 {
			t.Errorf("got %+v, want the broken record deleted, as neap has said", got.Foreign)
		}
		must(t, running.Claim.Conclude(t.Context(), idempotency.NothingDone()))
	}
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		srv := redistest.Standalone(t)
		test(t, at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil), srv.Admin(t))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.Cluster(t)
		test(t, at(t, c.Client(t), c.Nodes()[1].AdminURL(), c.Prefix(t), nil), c.Admin(t))
	})
}

// TestGuardDoubtIsBounded by --rows and --keys, and says so.
func TestGuardDoubtIsBounded(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), "neap", []byte("0123456789abcdef"))
	leaveInDoubt(t, p, "pay", "a", "b", "c")
	neap(t, p.with("guard", "doubt", "--rows", "1")...).wants(t, exitFound, "3 records in doubt", "2 more records not shown: see --rows", "begins with # is a hash")
	_, err := srv.Admin(t).Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for i := range 5000 {
			pipe.Set(t.Context(), fmt.Sprint("other:", i), "", time.Hour)
		}
		return nil
	})
	must(t, err)
	got := neap(t, p.with("guard", "doubt", "--keys", "1000")...)
	if got.code > exitNot || !strings.Contains(got.out, "about 1,000 keys looked at, and there are more: see --keys") {
		t.Errorf("got %+v, want it to say that there are more", got)
	}
	before := srv.Admin(t).Info(t.Context(), "commandstats").Val()
	if strings.Contains(before, "cmdstat_keys:") {
		t.Error("it sent KEYS, which blocks Redis")
	}
	for _, args := range [][]string{{"--rows", "0"}, {"--keys", "0"}, {"a b"}} {
		neap(t, p.with(append([]string{"guard", "doubt"}, args...)...)...).wants(t, exitUsage)
	}
	cut := redistest.NewUser(t, redistest.Rules, srv)
	neap(t, "guard", "doubt", "--url", "redis://"+cut+":"+redistest.Password+"@"+srv.Addr()).wants(t, exitRefused, "may SCAN")
}

// TestGuardDoubtOnAClusterWithADeadMaster shows what the others have, and says that records are missing.
func TestGuardDoubtOnAClusterWithADeadMaster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	nodes := cluster.Nodes()
	p := at(t, cluster.Client(t), nodes[0].AdminURL()+"?addr="+nodes[1].Addr(), "neap", nil)
	want := 0
	for i := range 30 {
		key := fmt.Sprint("message-", i)
		leaveInDoubt(t, p, "pay", key)
		if cluster.NodeOf(t, key) != nodes[2] {
			want++
		}
	}
	nodes[2].Stop(t)
	got := read[doubtPage](t, exitAway, p.with("guard", "doubt")...)
	if len(got.Records) != want || got.Cost.AllKeys || len(got.Missed) != 1 || got.Missed[0].Server != nodes[2].Addr() {
		t.Errorf("got %d records, missed %+v, want the %d of the others, and %s missed", len(got.Records), got.Missed, want, nodes[2].Addr())
	}
	neap(t, p.with("guard", "doubt")...).wants(t, exitAway, "Records of "+nodes[2].Addr()+" are missing: ")
}

// TestScopesAreRead: only what the gate has made.
func TestScopesAreRead(t *testing.T) {
	t.Parallel()
	for _, want := range []scope{{"everyone", "POST", "/orders", "k"}, {"a", "M-SEARCH", "/", ""}, {"3:x4:POST", "PATCH", "/1:a", "5:abcde"}} {
		if got := scopeOf(gate.IdempotencyScope(want.Principal, want.Method, want.Path, want.ClientKey)); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	for _, key := range []string{"", "k", "1:a", "1:a1:P", "1:a4:POST", "1:a4:POST9:/", "01:a4:POST1:/k", "0:4:POST1:/k", "1:a4:post1:/k", "1:a4:POST1:xk", "-1:a", "9999999999999999999:a", "+1:a4:POST1:/k"} {
		if got := scopeOf(key); got != (scope{}) {
			t.Errorf("%q: got %+v, want nothing", key, got)
		}
	}
}
