package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// broken are the checks that found a promise broken, with what they said.
func broken(t *testing.T, args ...string) map[string]finding {
	t.Helper()
	got := neap(t, append([]string{"doctor", "--json"}, args...)...)
	code := exitFound
	findings := map[string]finding{}
	for _, f := range decode[report](t, got.out).Findings {
		if f.OK {
			continue
		}
		code = exitNot
		if f.Check != "latency" { // of a machine that is busy
			findings[f.Check] = f
		}
	}
	if got.code != code || got.errs != "" {
		t.Errorf("doctor %q: got the status %d and %q, want %d and no error", args, got.code, got.errs, code)
	}
	return findings
}

// report is what doctor prints with --json.
type report struct{ Findings []finding }

// TestDoctorFindsWhatIsPlanted plants a fault in a server of its own each time. Doctor finds it, and nothing else.
func TestDoctorFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(*testing.T, *redistest.Server) []string {
		return func(t *testing.T, srv *redistest.Server) []string {
			must(t, srv.Admin(t).ConfigSet(t.Context(), name, value).Err())
			return nil
		}
	}
	for name, c := range map[string]struct {
		args   []string
		plant  func(*testing.T, *redistest.Server) []string
		check  string // that is broken; none if empty
		detail string
	}{
		"nothing":     {},
		"a policy":    {plant: set("maxmemory-policy", "allkeys-lru"), check: "maxmemory", detail: "allkeys-lru"},
		"volatile":    {plant: set("maxmemory-policy", "volatile-ttl"), check: "maxmemory", detail: "volatile-ttl"},
		"a maxmemory": {plant: set("maxmemory", "100mb")},
		"a replica":   {args: []string{"--replicaof", "127.0.0.1 1"}, check: "cluster", detail: "refuses writes"},
		"snapshots":   {args: []string{"--save", "3600 1"}},
		"append only": {args: []string{"--appendonly", "yes"}},
		"another's key": {plant: func(t *testing.T, srv *redistest.Server) []string {
			return plantKeys(t, srv, "neap:mine", "other:limit:api:{a}:p")
		}},
		"a key": {
			plant: func(t *testing.T, srv *redistest.Server) []string {
				return plantKeys(t, srv, "neap:limit:api:{ip=1}:window-5-1h")
			},
			check: "ttl", detail: "1 key of neap without a TTL, such as neap:limit:api:{ip=1}:window-5-1h",
		},
		"a key of another prefix": {
			plant: func(t *testing.T, srv *redistest.Server) []string {
				plantKeys(t, srv, "shop:lock:orders:{7}", "neap:lock:orders:{7}")
				return []string{"--prefix", "shop"}
			},
			check: "ttl", detail: "shop:lock:orders:{7}",
		},
		"no right": {
			plant: func(t *testing.T, srv *redistest.Server) []string {
				return []string{"--for-user", redistest.NewUser(t, redistest.Without(t, "+hset"), srv)}
			},
			check: "acl", detail: "lacks hset (lock, stock)",
		},
		"no right that is needed": {
			plant: func(t *testing.T, srv *redistest.Server) []string {
				return []string{"--for", "limit,guard", "--for-user", redistest.NewUser(t, redistest.Without(t, "+hset"), srv)}
			},
		},
		"other keys": {
			plant: func(t *testing.T, srv *redistest.Server) []string {
				return []string{"--for-user", redistest.NewUser(t, strings.Replace(redistest.Rules, "~neap:*", "~shop:*", 1), srv)}
			},
			check: "acl", detail: "lacks keys neap:*",
		},
		"nobody": {
			plant: func(*testing.T, *redistest.Server) []string { return []string{"--for-user", "nobody"} },
			check: "acl", detail: "there is no user nobody",
		},
		"a replay that drops": {
			args: []string{"--appendonly", "yes"},
			plant: func(t *testing.T, srv *redistest.Server) []string {
				must(t, srv.Admin(t).ACLSetUser(t.Context(), "default", "-pexpireat", "-hset").Err())
				return nil
			},
			check: "persistence", detail: "hset, pexpireat",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t, c.args...)
			args := []string{srv.AdminURL()}
			if c.plant != nil {
				args = append(args, c.plant(t, srv)...)
			}
			got := broken(t, args...)
			checks := slices.Collect(maps.Keys(got))
			if c.check == "" && len(got) > 0 || c.check != "" && !slices.Equal(checks, []string{c.check}) {
				t.Errorf("got %+v, want %q broken alone", got, c.check)
			}
			if f := got[c.check]; !strings.Contains(f.Detail, c.detail) || c.check != "" && f.Remedy == "" {
				t.Errorf("got %+v, want %q in its detail, and a remedy", f, c.detail)
			}
		})
	}
}

func plantKeys(t *testing.T, srv *redistest.Server, keys ...string) []string {
	t.Helper()
	for _, key := range keys {
		must(t, srv.Admin(t).Set(t.Context(), key, "1", 0).Err())
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDoctorTellsWhatIsNoPromise has no persistence, no replica and the default user told with a remedy.
func TestDoctorTellsWhatIsNoPromise(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	must(t, srv.Admin(t).ACLSetUser(t.Context(), "default", "+@all").Err())
	got := map[string]finding{}
	var names []string
	for _, f := range read[report](t, exitFound, "doctor", "redis://"+srv.Addr()).Findings {
		got[f.Check] = f
		names = append(names, f.Check)
	}
	if want := []string{"version", "eval", "maxmemory", "persistence", "acl", "latency", "cluster", "ttl", "clock", "memory"}; !slices.Equal(names, want) {
		t.Errorf("got the checks %q, want %q", names, want)
	}
	for check, detail := range map[string]string{"persistence": "none", "cluster": "no replicas", "acl": "the user default"} {
		if f := got[check]; !f.OK || !strings.Contains(f.Detail, detail) || f.Remedy == "" {
			t.Errorf("got %+v, want it ok, with %q and a remedy", f, detail)
		}
	}
}

// TestDoctorKnowsEveryRight takes each right of the documented line away in turn, and asks doctor by ACL DRYRUN and, as
// the user itself, by trying.
func TestDoctorKnowsEveryRight(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	slow := map[string]bool{"eval": true, "script|load": true, "ping": true, "subscribe": true, "publish": true}
	for word := range strings.FieldsSeq(redistest.Rules) {
		right, is := strings.CutPrefix(word, "+")
		if !is || slices.Contains([]string{"unsubscribe", "sunsubscribe"}, right) || slices.ContainsFunc(needs(true), func(n need) bool { return n.right == right }) &&
			!slices.ContainsFunc(needs(false), func(n need) bool { return n.right == right }) {
			continue // of clusters
		}
		user := redistest.NewUser(t, redistest.Without(t, word), srv)
		for way, args := range map[string][]string{
			"asking": {srv.AdminURL(), "--for-user", user},
			"trying": {"redis://" + user + ":" + redistest.Password + "@" + srv.Addr()},
		} {
			for _, f := range decode[report](t, neap(t, append([]string{"doctor", "--json"}, args...)...).out).Findings {
				if f.Check == "acl" && (f.OK != slow[right] || !strings.Contains(f.Detail, "lacks "+right) || !strings.HasSuffix(f.Remedy, user+" +"+right)) {
					t.Errorf("%s, without %s: got %+v, want it named alone, and broken: %v", way, right, f, !slow[right])
				}
			}
		}
	}
	user := redistest.NewUser(t, strings.Replace(redistest.Without(t, "+set"), "+del ", "", 1), srv)
	neap(t, "doctor", "redis://"+user+":"+redistest.Password+"@"+srv.Addr()).wants(t, exitNot, "+del +set")
	redistest.AssertNoImmortalKeys(t, srv.Admin(t), "neap")
}

// TestNeedsAreTheDocumentedLine compares the rights that doctor knows with those that the library's user has in all tests.
func TestNeedsAreTheDocumentedLine(t *testing.T) {
	t.Parallel()
	got := []string{"resetchannels", "&neap:*", "~neap:*", "-@all", "+sunsubscribe", "+unsubscribe"} // a subscriber may unsubscribe
	for _, n := range needs(true) {
		got = append(got, "+"+n.right)
	}
	want := strings.Fields(redistest.Rules)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	must(t, err)
	if !strings.Contains(string(page), redistest.Rules) {
		t.Error("docs/operations.md has another line")
	}
}

// TestDoctorMayKnowLess has a user with the documented rights, who may not look at the server.
func TestDoctorMayKnowLess(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	user := redistest.NewUser(t, redistest.Rules, srv)
	for _, f := range read[report](t, exitFound, "doctor", "redis://"+user+":"+redistest.Password+"@"+srv.Addr()).Findings {
		unlooked := slices.Contains([]string{"maxmemory", "persistence", "cluster", "ttl", "memory"}, f.Check)
		if strings.Contains(f.Detail, "not looked at") != unlooked || unlooked && f.Remedy == "" {
			t.Errorf("got %+v, want it not looked at: %v", f, unlooked)
		}
	}
}

// TestDoctorWithoutEval wants the scripts loaded.
func TestDoctorWithoutEval(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	address := "redis://" + redistest.NewUser(t, redistest.LoadedRules(), srv) + ":" + redistest.Password + "@" + srv.Addr()
	if f := broken(t, address)["eval"]; !strings.Contains(f.Detail, "may not EVAL, and") {
		t.Errorf("got %+v, want it to say that scripts are missing", f)
	}
	user := redistest.NewUser(t, redistest.LoadedRules(), srv)
	if f := broken(t, srv.AdminURL(), "--for-user", user)["eval"]; !strings.Contains(f.Detail, "the user "+user+" may not EVAL, and") {
		t.Errorf("for another user: got %+v, want it to say that scripts are missing", f)
	}
	srv.LoadScripts(t)
	if got := broken(t, address); len(got) > 0 {
		t.Errorf("with the scripts loaded: got %+v, want nothing broken", got)
	}
	if got := broken(t, srv.AdminURL(), "--for-user", user); len(got) > 0 {
		t.Errorf("for another user, with the scripts loaded: got %+v, want nothing broken", got)
	}
}

// TestDoctorWithoutLua has a server whose EVAL is gone, as where Lua is a package of its own.
func TestDoctorWithoutLua(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--rename-command", "EVAL", "NOEVAL")
	if f := broken(t, srv.AdminURL())["eval"]; !strings.Contains(f.Detail, "unknown command") || !strings.Contains(f.Remedy, "Lua") {
		t.Errorf("got %+v, want it to say that EVAL is unknown", f)
	}
}

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
	if f := decode[report](t, neap(t, "doctor", "--json", address).out).Findings[6]; !strings.Contains(f.Detail, "a cluster, no replicas") {
		t.Errorf("got %+v, want a cluster without replicas", f)
	}
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
		if got := read[topPage](t, exitFound, p.with("top")...); got.Cost.Replicas != replicas || len(got.Subjects) != 1 {
			t.Errorf("%s: got %+v, want the one subject, from %d replicas", when, got, replicas)
		}
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

// TestDoctorTellsMemory counts and weighs the keys of each primitive.
func TestDoctorTellsMemory(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	limiter, err := limit.New(srv.Client(t), "api", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, &limit.Options{Fail: limit.FailClosed, Budget: 5 * time.Second})
	must(t, err)
	for _, subject := range []string{"a", "b", "c"} {
		if _, err := limiter.Take(t.Context(), subject); err != nil {
			t.Fatal(err)
		}
	}
	bytes := srv.Admin(t).MemoryUsage(t.Context(), "neap:limit:api:{a}:window-5-1h").Val()
	want := "3 limit keys of about " + size(3*bytes) + "; all keys looked at"
	if f := read[report](t, exitFound, "doctor", srv.AdminURL()).Findings[9]; f.Detail != want {
		t.Errorf("got %+v, want %q", f, want)
	}
}

// TestDoctorHasNoDoctor is a Redis that does not answer, or turns away.
func TestDoctorHasNoDoctor(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	neap(t, "doctor", "redis://default:not-the-password@"+srv.Addr()).wants(t, exitFound) // nopass
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

func TestSizes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536 * 1024: "1.5 MiB", 3 << 30: "3.0 GiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
