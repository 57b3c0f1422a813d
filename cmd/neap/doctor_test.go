package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// diagnosed returns what neap doctor reports, and the checks that found a promise broken.
func diagnosed(t *testing.T, args ...string) (all report, findings map[string]finding) {
	t.Helper()
	got := neap(t, append([]string{"doctor", "--json"}, args...)...)
	all = decode[report](t, got.out)
	code := exitFound
	findings = map[string]finding{}
	for _, f := range all.Findings {
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
	return all, findings
}

// broken returns the checks that found a promise broken.
func broken(t *testing.T, args ...string) map[string]finding {
	t.Helper()
	_, findings := diagnosed(t, args...)
	return findings
}

// examined returns what doctor reports, which finds nothing broken.
func examined(t *testing.T, args ...string) report {
	t.Helper()
	all, findings := diagnosed(t, args...)
	if len(findings) > 0 {
		t.Errorf("doctor %q: got %+v, want nothing broken", args, findings)
	}
	return all
}

// report is what doctor prints with --json.
type report struct{ Findings []finding }

// of is the finding of a check.
func (r report) of(check string) finding {
	i := slices.IndexFunc(r.Findings, func(f finding) bool { return f.Check == check })
	if i < 0 {
		return finding{}
	}
	return r.Findings[i]
}

// TestDoctorFindsEachFault has a server of its own for each fault. Doctor finds it, and nothing else.
func TestDoctorFindsEachFault(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(*testing.T, *redistest.Server) []string {
		return func(t *testing.T, srv *redistest.Server) []string {
			must(t, srv.Admin(t).ConfigSet(t.Context(), name, value).Err())
			return nil
		}
	}
	for name, c := range map[string]struct {
		args   []string
		cause  func(*testing.T, *redistest.Server) []string // the fault; it returns more arguments of doctor
		check  string                                       // those that are broken, with spaces between them
		detail string                                       // of the first of them
	}{
		"nothing":      {},
		"a policy":     {cause: set("maxmemory-policy", "allkeys-lru"), check: "maxmemory", detail: "allkeys-lru"},
		"volatile":     {cause: set("maxmemory-policy", "volatile-ttl"), check: "maxmemory", detail: "volatile-ttl"},
		"a maxmemory":  {cause: set("maxmemory", "100mb")},
		"a replica":    {args: []string{"--replicaof", "127.0.0.1 1"}, check: "cluster write", detail: "refuses writes"},
		"no replicas":  {args: []string{"--min-replicas-to-write", "1"}, check: "write", detail: "NOREPLICAS"},
		"no memory":    {args: []string{"--maxmemory", "1", "--maxmemory-policy", "noeviction"}, check: "write", detail: "OOM"},
		"no HSET":      {args: []string{"--rename-command", "HSET", ""}, check: "acl", detail: "the server has no command hset (lock, stock)"},
		"another ZADD": {args: []string{"--rename-command", "ZADD", "xzadd"}, check: "acl", detail: "the server has no command zadd"},
		"no PUBLISH":   {args: []string{"--rename-command", "PUBLISH", ""}}, // neap is slower without it
		"append only, no HSET": {
			args:  []string{"--appendonly", "yes", "--rename-command", "HSET", ""},
			check: "acl", detail: "the server has no command hset (lock, stock)",
		},
		"no disk": {
			args: unsaved,
			cause: func(t *testing.T, srv *redistest.Server) []string {
				failSave(t, srv)
				return nil
			},
			check: "persistence write", detail: "the last write to disk failed",
		},
		"snapshots":   {args: []string{"--save", "3600 1"}},
		"append only": {args: []string{"--appendonly", "yes"}},
		"another's key": {cause: func(t *testing.T, srv *redistest.Server) []string {
			return setKeys(t, srv, "neap:mine", "other:limit:api:{a}:p")
		}},
		"a key": {
			cause: func(t *testing.T, srv *redistest.Server) []string {
				return setKeys(t, srv, "neap:limit:api:{ip=1}:window-5-1h")
			},
			check: "ttl", detail: "1 key of neap without a TTL, such as neap:limit:api:{ip=1}:window-5-1h",
		},
		"a key of another prefix": {
			cause: func(t *testing.T, srv *redistest.Server) []string {
				setKeys(t, srv, "shop:lock:orders:{7}", "neap:lock:orders:{7}")
				return []string{"--prefix", "shop"}
			},
			check: "ttl", detail: "shop:lock:orders:{7}",
		},
		"no right": {
			cause: func(t *testing.T, srv *redistest.Server) []string {
				return []string{"--for-user", redistest.NewUser(t, redistest.Without(t, "+hset"), srv)}
			},
			check: "acl", detail: "lacks hset (lock, stock)",
		},
		"no right that is needed": {
			cause: func(t *testing.T, srv *redistest.Server) []string {
				return []string{"--for", "limit,guard", "--for-user", redistest.NewUser(t, redistest.Without(t, "+hset"), srv)}
			},
		},
		"other keys": {
			cause: func(t *testing.T, srv *redistest.Server) []string {
				return []string{"--for-user", redistest.NewUser(t, strings.Replace(redistest.Rules, "~neap:*", "~shop:*", 1), srv)}
			},
			check: "acl", detail: "lacks keys neap:*",
		},
		"nobody": {
			cause: func(*testing.T, *redistest.Server) []string { return []string{"--for-user", "nobody"} },
			check: "acl", detail: "there is no user nobody",
		},
		"a replay that drops": {
			args: []string{"--appendonly", "yes"},
			cause: func(t *testing.T, srv *redistest.Server) []string {
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
			if c.cause != nil {
				args = append(args, c.cause(t, srv)...)
			}
			got := broken(t, args...)
			want := strings.Fields(c.check)
			if checks := slices.Sorted(maps.Keys(got)); !slices.Equal(checks, want) {
				t.Errorf("got %+v, want %q broken alone", got, want)
			}
			for i, check := range want {
				if f := got[check]; i == 0 && !strings.Contains(f.Detail, c.detail) || f.Remedy == "" {
					t.Errorf("got %+v, want %q in its detail, and a remedy", f, c.detail)
				}
			}
		})
	}
}

func setKeys(t *testing.T, srv *redistest.Server, keys ...string) []string {
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
	for _, f := range examined(t, "redis://"+srv.Addr()).Findings {
		got[f.Check] = f
		names = append(names, f.Check)
	}
	if want := []string{"version", "eval", "write", "maxmemory", "persistence", "acl", "latency", "cluster", "ttl", "clock", "memory"}; !slices.Equal(names, want) {
		t.Errorf("got the checks %q, want %q", names, want)
	}
	for check, detail := range map[string]string{"persistence": "none", "cluster": "no replicas", "acl": "the user default"} {
		if f := got[check]; !f.OK || !strings.Contains(f.Detail, detail) || f.Remedy == "" {
			t.Errorf("got %+v, want it ok, with %q and a remedy", f, detail)
		}
	}
	some := examined(t, "redis://"+srv.Addr(), "--for", "limit,guard").Findings
	if want := "may do all that neap does for limit, guard"; !slices.ContainsFunc(some, func(f finding) bool {
		return f.Check == "acl" && strings.HasSuffix(f.Detail, want)
	}) {
		t.Errorf("--for limit,guard: got %+v, want that the user %s", some, want)
	}
	if n := srv.Admin(t).DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("after doctor: got %d keys in an empty server, want none", n)
	}
}

// TestDoctorTellsMemory counts and weighs the keys of each primitive.
func TestDoctorTellsMemory(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	limiter, err := limit.New(srv.Client(t), "api", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed, Budget: 5 * time.Second})
	must(t, err)
	for _, subject := range []string{"a", "b", "c"} {
		if _, err := limiter.Take(t.Context(), subject); err != nil {
			t.Fatal(err)
		}
	}
	bytes := srv.Admin(t).MemoryUsage(t.Context(), "neap:limit:api:{a}:window-5-1h").Val()
	want := "3 limit keys of about " + size(3*bytes) + "; all keys looked at"
	if f := examined(t, srv.AdminURL()).of("memory"); f.Detail != want {
		t.Errorf("got %+v, want %q", f, want)
	}
}

// reply is an error that Redis answered.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// TestVerdicts are those that no server here can be made to give.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	trips := func(usual, worst time.Duration) verdict { return judgeLatency([]time.Duration{worst, usual, usual}) }
	for name, c := range map[string]struct {
		got    verdict
		broken bool
		detail string
		remedy string // a part of it; there is none if empty
	}{
		"Redis 5.0":         {judgeVersion("redis", "5.0.14"), true, "redis 5.0.14", "6.2 or later"},
		"Redis 6.0":         {judgeVersion("redis", "6.0.20"), true, "redis 6.0.20", "6.2 or later"},
		"Redis 6.2":         {judgeVersion("redis", "6.2.0"), false, "redis 6.2.0", ""},
		"Redis 10.0":        {judgeVersion("redis", "10.0.0"), false, "redis 10.0.0", ""},
		"a quick one":       {trips(10*time.Millisecond, 50*time.Millisecond), false, "takes 10ms, and 50ms at worst of 3", ""},
		"a pause":           {trips(10*time.Millisecond, 51*time.Millisecond), false, "51ms at worst", "SLOWLOG"},
		"a far one":         {trips(11*time.Millisecond, 60*time.Millisecond), false, "takes 11ms", "MinIdleConns"},
		"beyond limits":     {trips(51*time.Millisecond, time.Second), true, "takes 51ms", "limit.Options.Budget"},
		"beyond all":        {trips(251*time.Millisecond, time.Second), true, "takes 251ms", "a longer Budget: each"},
		"a lost write":      {judgeWrite(context.DeadlineExceeded), true, "SET: context deadline exceeded", "stops answering"},
		"a lost HELLO":      {judgeHello(context.DeadlineExceeded), true, "HELLO: context deadline exceeded", "stops answering"},
		"no HELLO":          {judgeHello(reply("ERR unknown command 'HELLO'")), true, "HELLO: ERR unknown", "6.2 or later"},
		"a lost EVAL":       {judgeEval(context.DeadlineExceeded), true, "EVAL: context deadline exceeded", "stops answering"},
		"no EVAL":           {judgeEval(reply("ERR unknown command 'eval'")), true, "EVAL: ERR unknown", "Lua engine"},
		"a busy EVAL":       {judgeEval(reply("BUSY Redis is busy running a script")), true, "EVAL: BUSY", "SCRIPT KILL"},
		"a cluster down":    {judgeWrite(reply("CLUSTERDOWN Hash slot not served")), true, "refuses writes: CLUSTERDOWN", "--cluster check"},
		"another refusal":   {judgeWrite(reply("MOVED 1 127.0.0.1:1")), true, "refuses writes: MOVED", "see the log"},
		"the same clock":    {judgeClock(999 * time.Millisecond), false, "within a second", ""},
		"a clock that lags": {judgeClock(time.Minute), false, "1m0s away", "NTP"},
		"a wrong clock":     {judgeClock(61 * time.Second), true, "1m1s away", "NTP"},
		"room":              {maxmemory(t.Context(), nil, node{}, map[string]string{"maxmemory": "1000", "used_memory": "900", "maxmemory_policy": "noeviction"}), false, "900 B of 1000 B used", ""},
		"little room":       {maxmemory(t.Context(), nil, node{}, map[string]string{"maxmemory": "1000", "used_memory": "901", "maxmemory_policy": "noeviction"}), false, "901 B of 1000 B used", "more memory"},
	} {
		if c.got.broken != c.broken || !strings.Contains(c.got.detail, c.detail) || !strings.Contains(c.got.remedy, c.remedy) || (c.got.remedy == "") != (c.remedy == "") {
			t.Errorf("%s: got %+v, want it broken: %t, %q in its detail, and %q in its remedy", name, c.got, c.broken, c.detail, c.remedy)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536 * 1024: "1.5 MiB", 3 << 30: "3.0 GiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
