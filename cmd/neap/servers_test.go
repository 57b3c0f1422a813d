package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// TestDoctorOnACluster names the node that is not as the others are.
func TestDoctorOnACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	address := cluster.Nodes()[0].AdminURL()
	if got := broken(t, address); len(got) > 0 {
		t.Errorf("got %+v, want nothing broken", got)
	}
	wrong := cluster.Nodes()[2]
	must(t, wrong.Admin(t).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lfu").Err())
	order := "a"
	for cluster.NodeOf(t, order) != wrong {
		order += "a"
	}
	must(t, cluster.Admin(t).Set(t.Context(), "neap:lock:orders:{"+order+"}", "1", 0).Err())
	got := broken(t, address)
	for check, detail := range map[string]string{"maxmemory": wrong.Addr() + ": maxmemory-policy allkeys-lfu", "ttl": wrong.Addr() + ": 1 key"} {
		if !strings.Contains(got[check].Detail, detail) {
			t.Errorf("got %+v, want %q", got[check], detail)
		}
		delete(got, check)
	}
	if len(got) > 0 {
		t.Errorf("got %+v broken too, want nothing else", got)
	}
	if f := decode[report](t, neap(t, "doctor", "--json", address).out).of("cluster"); !strings.Contains(f.Detail, "a cluster, no replicas") {
		t.Errorf("got %+v, want a cluster without replicas", f)
	}
}

// TestDoctorOnAClusterWithADeadMaster names it, and looks at the others.
func TestDoctorOnAClusterWithADeadMaster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	dead := cluster.Nodes()[1]
	must(t, cluster.Nodes()[2].Admin(t).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lfu").Err())
	dead.Stop(t)
	got := broken(t, cluster.Nodes()[0].AdminURL())
	for check, detail := range map[string]string{"cluster": dead.Addr() + ": does not answer", "maxmemory": cluster.Nodes()[2].Addr() + ": maxmemory-policy allkeys-lfu"} {
		if f := got[check]; !strings.Contains(f.Detail, detail) || f.Remedy == "" {
			t.Errorf("got %+v, want %q, and a remedy", f, detail)
		}
	}
	if f := got["maxmemory"]; !strings.Contains(f.Detail, dead.Addr()+": not looked at") {
		t.Errorf("got %+v, want it to say that the dead server was not looked at", f)
	}
}

// TestLimitListOnAClusterWithADeadMaster shows what the others have, and says that subjects are missing.
func TestLimitListOnAClusterWithADeadMaster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	nodes := cluster.Nodes()
	p := at(t, cluster.Client(t), nodes[0].AdminURL()+"?addr="+nodes[1].Addr(), "neap", nil)
	l, err := limit.New(p.store, "web", []limit.Policy{limit.KeepOnChange(limit.FixedWindow{Name: "w", Limit: 10, Window: time.Hour})}, &limit.Options{Overrides: true})
	must(t, err)
	want := 0
	for i := range 30 {
		subject := fmt.Sprint("user-", i)
		must(t, l.Override(t.Context(), subject, time.Hour, limit.FixedWindow{Limit: 20, Window: time.Hour}))
		if cluster.NodeOf(t, subject) != nodes[2] {
			want++
		}
	}
	nodes[2].Stop(t)
	got := read[overridePage](t, exitAway, p.with("limit", "list")...)
	if len(got.Subjects) != want || got.AllKeys || len(got.Missed) != 1 || got.Missed[0].Server != nodes[2].Addr() {
		t.Errorf("got %d subjects, missed %+v, all keys: %t; want the %d of the others, and %s missed", len(got.Subjects), got.Missed, got.AllKeys, want, nodes[2].Addr())
	}
	neap(t, p.with("limit", "list")...).wants(t, exitAway, "user-", "Subjects of "+nodes[2].Addr()+" are missing: ", "about ")
}

// TestTopOnAClusterWithADeadMaster shows what the others have, names the dead one, and says so by its status.
func TestTopOnAClusterWithADeadMaster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	nodes := cluster.Nodes()
	p := at(t, cluster.Client(t), nodes[0].AdminURL()+"?addr="+nodes[1].Addr(), "neap", nil)
	l := p.limiter(t, limit.FixedWindow{Limit: 10, Window: time.Hour})
	want := 0
	for i := range 30 {
		subject := fmt.Sprint("user-", i)
		take(t, l, subject, 1)
		if cluster.NodeOf(t, subject) != nodes[2] {
			want++
		}
	}
	nodes[2].Stop(t)
	got := read[topPage](t, exitAway, p.with("top", "--rows", "100")...)
	if len(got.Subjects) != want || got.Cost.AllKeys || len(got.Missed) != 1 || got.Missed[0].Server != nodes[2].Addr() || got.Missed[0].Why == "" {
		t.Errorf("got %d subjects, missed %+v, all keys: %t; want the %d of the others, and %s missed", len(got.Subjects), got.Missed, got.Cost.AllKeys, want, nodes[2].Addr())
	}
	neap(t, p.with("top")...).wants(t, exitAway, "user-", "Subjects of "+nodes[2].Addr()+" are missing: ", "asked about")
	nodes[1].Stop(t)
	got = read[topPage](t, exitAway, p.with("top", "web")...)
	if len(got.Missed) != 2 || got.Subjects == nil || len(got.Subjects) > 0 {
		t.Errorf("with two dead ones: got %+v, want both missed, and no subject of another limiter", got)
	}
	must(t, nodes[0].Admin(t).Do(t.Context(), "ACL", "SETUSER", "harness", "-scan").Err())
	neap(t, p.with("top")...).wants(t, exitAway, nodes[0].Addr()+": ", "may SCAN", nodes[1].Addr()+": ", nodes[2].Addr()+": ")
	nodes[0].Stop(t)
	neap(t, p.with("top")...).wants(t, exitAway, "check that a Redis listens at this address")
}

// TestAClusterWithoutSlots is no Redis that keeps a promise, and no empty one.
func TestAClusterWithoutSlots(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--cluster-enabled", "yes")
	if f := broken(t, srv.AdminURL())["cluster"]; !strings.Contains(f.Detail, "no slots") || f.Remedy == "" {
		t.Errorf("got %+v, want it to say that there are no slots, and a remedy", f)
	}
	for _, args := range [][]string{{"peek", "api", "user"}, {"top"}} {
		neap(t, append(args, "--url", srv.AdminURL())...).wants(t, exitAway, "no slots")
	}
}

// TestThroughASentinel has a master that a sentinel names, before and after its replica has taken over.
func TestThroughASentinel(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	p := at(t, s.Client(t), s.AdminURL(), "neap", nil)
	take(t, p.limiter(t, limit.FixedWindow{Limit: 10, Window: time.Hour}), "user", 3)
	look := func(when string, replicas int) {
		if got := broken(t, s.AdminURL()); len(got) > 0 {
			t.Errorf("%s: got %+v, want nothing broken", when, got)
		}
		if got := read[tally](t, exitFound, p.with("peek", "api", "user")...); got.Policies[0].Remaining != 7 {
			t.Errorf("%s: got %+v, want 7 left", when, got)
		}
		redistest.Await(t, time.Minute, fmt.Sprintf("%s: the one subject, from %d replicas", when, replicas), func() bool {
			got := read[topPage](t, exitFound, p.with("top")...)
			return got.Cost.Replicas == replicas && len(got.Subjects) == 1
		})
	}
	redistest.Await(t, 30*time.Second, "the replica to have the key", func() bool {
		return s.Replica.Admin(t).DBSize(t.Context()).Val() == 1 &&
			strings.Contains(s.Master.Admin(t).Info(t.Context(), "replication").Val(), "state=online")
	})
	look("before", 1)
	s.Master.Stop(t)
	redistest.AwaitTakeover(t, s.Replica)
	redistest.Await(t, 30*time.Second, "the sentinel to name the new master", func() bool { return neap(t, p.with("top")...).code == exitFound })
	look("after", 0)
}

// TestDoctorWithoutAnAnswer has a Redis that refuses the login, or does not answer.
func TestDoctorWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	examined(t, "redis://default:not-the-password@"+srv.Addr()) // nopass
	got := neap(t, "doctor", "redis://"+redistest.User+":not-the-password@"+srv.Addr())
	got.wants(t, exitRefused, "WRONGPASS")
	if strings.Contains(got.errs, "not-the-password") {
		t.Errorf("got %q, want no password", got.errs)
	}
	srv.Pause(t)
	neap(t, "doctor", "--timeout", "100ms", srv.AdminURL()).wants(t, exitAway, srv.Addr())
	srv.Resume(t)
	srv.Stop(t)
	neap(t, "doctor", srv.AdminURL()).wants(t, exitAway, "refused")
	neap(t, "doctor").wants(t, exitUsage, "REDIS_URL")
	neap(t, "doctor", "--keys", "0", srv.AdminURL()).wants(t, exitUsage, "--keys is 0")
}

// TestAServerInProtectedMode says so before it hangs up, which is all that go-redis reports.
func TestAServerInProtectedMode(t *testing.T) {
	t.Parallel()
	server, end, err := redistest.Start("--protected-mode", "yes", "--bind", "*")
	must(t, err)
	t.Cleanup(func() { _ = end() })
	address := redistest.FromOutside(server)
	if address == "" {
		t.Skip("this host has no address but those of itself")
	}
	for _, command := range [][]string{{"doctor"}, {"top"}, {"peek", "api", "user"}} {
		neap(t, append(command, "--url", "redis://"+address)...).wants(t, exitAway, address, "DENIED", "protected mode", "run neap on the host of the server")
	}
}
