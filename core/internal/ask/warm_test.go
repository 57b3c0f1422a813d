package ask_test

import (
	"cmp"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/internal/ask"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

type warmer interface {
	Warm(ctx context.Context) error
}

// kinds are all kinds of policies, and features are all that a policy can have. options
// are those that change what a limiter keeps or sends. primitives are all types with a
// Warm. TestWarmForgetsNothing finds what is missing here.
var (
	kinds = map[string]limit.Policy{
		"TokenBucket":    limit.TokenBucket{Name: "bucket", Rate: 10, Per: time.Hour, Burst: 500},
		"a fast bucket":  limit.TokenBucket{Name: "fast", Rate: 5000, Per: time.Second, Burst: 1_000_000},
		"FixedWindow":    limit.FixedWindow{Name: "window", Limit: 500, Window: time.Hour},
		"CalendarWindow": limit.CalendarWindow{Name: "calendar", Limit: 500, Every: limit.Month, MaxDebt: 10},
		"SlidingWindow":  limit.SlidingWindow{Name: "sliding", Limit: 500, Window: time.Hour},
		"SlidingLog":     limit.SlidingLog{Name: "log", Limit: 500, Window: time.Hour},
	}
	features = map[string]func(limit.Policy) limit.Policy{
		"WithBan": func(p limit.Policy) limit.Policy {
			return limit.WithBan(p, limit.Ban{After: 3, Within: time.Minute, For: time.Minute})
		},
		"WithLease":    func(p limit.Policy) limit.Policy { return limit.WithLease(p, time.Second) },
		"Shadow":       limit.Shadow,
		"PerRequest":   limit.PerRequest,
		"KeepOnChange": limit.KeepOnChange,
	}
	options = map[string]limit.Options{
		"no options": {},
		"prepaid":    {Prepaid: limit.Prepaid{Most: 10}},
		"remembered": {RememberDenials: time.Minute},
		"shared":     {Instances: 3},
		"held":       {Holds: true},
		"overridden": {Overrides: true},
	}
	primitives = map[string]func(st *store.Store) (warmer, error){
		"limit.Limiter": func(st *store.Store) (warmer, error) {
			return limit.New(st, "n", slices.Collect(maps.Values(kinds)), nil)
		},
		"inflight.Limiter": func(st *store.Store) (warmer, error) { return inflight.New(st, "n", 10, nil) },
		"lock.Locker":      func(st *store.Store) (warmer, error) { return lock.New(st, "n", nil) },
		"idempotency.Guard": func(st *store.Store) (warmer, error) {
			return idempotency.New(st, "n", idempotency.Retry{}, nil)
		},
		"stock.Stock": func(st *store.Store) (warmer, error) { return stock.New(st, "n", nil) },
	}
)

// warmers returns every primitive, and a limiter for each kind of policy with each option
// and up to two features. New refuses some of these limiters, but none of the parts.
func warmers(t *testing.T, st *store.Store) map[string]warmer {
	t.Helper()
	all, used := map[string]warmer{}, map[string]bool{}
	for name, open := range primitives {
		w, err := open(st)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = w
	}
	plain := func(p limit.Policy) limit.Policy { return p }
	with := maps.Clone(features)
	with["plain"] = plain
	for kind, p := range kinds {
		for option, opts := range options {
			for first, inner := range with {
				for second, outer := range with {
					l, err := limit.New(st, "n", []limit.Policy{outer(inner(p))}, &opts)
					if err != nil {
						continue
					}
					parts := []string{kind, option, first, second}
					all[strings.Join(parts, ", ")] = l
					for _, part := range parts {
						used[part] = true
					}
				}
			}
		}
	}
	for _, part := range slices.Concat(names(kinds), names(options), names(with)) {
		if !used[part] {
			t.Errorf("%q: got no limiter with it, want one at least", part)
		}
	}
	return all
}

func names[V any](of map[string]V) []string { return slices.Collect(maps.Keys(of)) }

// strange is what a proxy in front of Redis may answer to a command that it does not
// know.
type strange struct{ redis.Hook }

func (strange) DialHook(next redis.DialHook) redis.DialHook { return next }

func (strange) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (strange) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "script" {
			cmd.SetErr(reply("unsupported command"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

// reply is an error that a server has answered.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// working are clients of servers on which a first request is answered.
var working = map[string]func(t *testing.T) script.Client{
	"all rights": func(t *testing.T) script.Client { return redistest.Standalone(t).Client(t) },
	"no right to load": func(t *testing.T) script.Client {
		return as(t, redistest.Standalone(t), redistest.Without(t, "+script|load")+" -script")
	},
	"no right to EVAL": func(t *testing.T) script.Client {
		srv := redistest.NewStandalone(t)
		srv.LoadScripts(t)
		return as(t, srv, redistest.LoadedRules())
	},
	"SCRIPT renamed": func(t *testing.T) script.Client {
		return redistest.NewStandalone(t, "--rename-command", "SCRIPT", "").Client(t)
	},
	"EVAL renamed": func(t *testing.T) script.Client {
		srv := redistest.NewStandalone(t, "--rename-command", "EVAL", "")
		srv.LoadScripts(t)
		return srv.Client(t)
	},
	"a proxy that knows no SCRIPT": func(t *testing.T) script.Client {
		rdb := redistest.Standalone(t).Client(t)
		rdb.AddHook(strange{})
		return rdb
	},
	"full": func(t *testing.T) script.Client {
		return configured(t, "maxmemory", "1").Client(t)
	},
	"too few replicas": func(t *testing.T) script.Client {
		return configured(t, "min-replicas-to-write", "1").Client(t)
	},
	"a replica": func(t *testing.T) script.Client {
		return redistest.NewReplica(t, redistest.NewStandalone(t)).Client(t)
	},
	"a cluster": func(t *testing.T) script.Client { return redistest.Cluster(t).Client(t) },
	"a cluster, no right to load": func(t *testing.T) script.Client {
		c := redistest.Cluster(t)
		user := redistest.NewUser(t, redistest.Without(t, "+script|load"), c.Nodes()...)
		return c.Client(t, func(o *redis.ClusterOptions) { o.Username = user })
	},
}

func as(t *testing.T, srv *redistest.Server, rules string) script.Client {
	t.Helper()
	user := redistest.NewUser(t, rules, srv)
	return srv.Client(t, func(o *redis.Options) { o.Username = user })
}

func configured(t *testing.T, name, value string) *redistest.Server {
	t.Helper()
	srv := redistest.NewStandalone(t, "--maxmemory-policy", "noeviction")
	if err := srv.Admin(t).ConfigSet(t.Context(), name, value).Err(); err != nil {
		t.Fatal(err)
	}
	return srv
}

// TestWarmSucceedsWhereRequestsDo warms everything on every server, with and without a
// queue. `make test` warms every primitive on every server, and every limiter on some of
// them: each fifth, and the next fifth on the next server.
func TestWarmSucceedsWhereRequestsDo(t *testing.T) {
	t.Parallel()
	every := max(500/redistest.Ops(2000), 1)
	for i, name := range slices.Sorted(maps.Keys(working)) {
		connect := working[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := connect(t)
			for j, queue := range []store.QueueMode{store.Direct, store.Queued} {
				st := storetest.Open(t, rdb, store.Options{Prefix: redistest.Prefix(t), Queue: queue})
				all := warmers(t, st)
				for n, what := range slices.Sorted(maps.Keys(all)) {
					if _, always := primitives[what]; !always && (n+2*i+j)%every != 0 {
						continue
					}
					if err := all[what].Warm(t.Context()); err != nil {
						t.Errorf("%s (%v): got %v, want no error", what, queue, err)
					}
				}
			}
		})
	}
}

// TestWarmNeedsNoReplica: a replica of a cluster that does not answer holds up no request,
// and so no Warm.
func TestWarmNeedsNoReplica(t *testing.T) {
	t.Parallel()
	c := redistest.NewReplicatedCluster(t, "--cluster-replica-no-failover", "yes")
	rdb := c.Client(t)
	c.ReplicaOf(c.Nodes()[0]).Pause(t)
	var known atomic.Int64
	if err := rdb.ForEachSlave(t.Context(), func(context.Context, *redis.Client) error { known.Add(1); return nil }); err != nil || known.Load() == 0 {
		t.Fatalf("the replicas: got %d, %v, want some: this test is about them", known.Load(), err)
	}
	patient, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for name, open := range primitives {
		w, err := open(storetest.At(t, rdb, redistest.Prefix(t)))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Warm(patient); err != nil {
			t.Errorf("%s: got %v, want no error; %s", name, err, c.Nodes()[1].Admin(t).ClusterNodes(t.Context()).Val())
		}
	}
	c.Nodes()[0].Pause(t)
	for name, open := range primitives {
		w, err := open(storetest.At(t, rdb, redistest.Prefix(t)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := w.Warm(ctx); err == nil {
			t.Errorf("%s: got no error while a master is silent, want one", name)
		}
		cancel()
	}
}

// late answers each call after 15 seconds.
type late struct{}

func (late) Process(ctx context.Context, cmd redis.Cmder) error {
	select {
	case <-time.After(15 * time.Second):
		cmd.(interface{ SetVal(any) }).SetVal(int64(1))
		return nil
	case <-ctx.Done():
		cmd.SetErr(ctx.Err())
		return ctx.Err()
	}
}

// TestWarmLastsUntilItsDeadline, and ten seconds without one.
func TestWarmLastsUntilItsDeadline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deadline time.Duration // 0: none
		took     time.Duration
		failed   bool
	}{
		"none":   {0, 10 * time.Second, true},
		"before": {2 * time.Second, 2 * time.Second, true},
		"after":  {20 * time.Second, 15 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				st := storetest.Direct(t, late{}, "p")
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				began := time.Now()
				err := ask.Warm(ctx, st, ask.About(script.New("question.lua", "return 1"), "k"))
				if took := time.Since(began); took != c.took || (err != nil) != c.failed {
					t.Errorf("got %v after %v, want an error: %v, after %v", err, took, c.failed, c.took)
				}
				<-time.After(time.Minute) // the store's questions to the server end
			})
		})
	}
}

// TestWarmForgetsNothing looks for what the tables above lack.
func TestWarmForgetsNothing(t *testing.T) {
	t.Parallel()
	for of := range reflect.TypeFor[limit.Options]().Fields() {
		changesNoCall := slices.Contains([]string{"Budget", "Fail", "MaxLocal", "MaxWaiting", "Observer"}, of.Name)
		if !changesNoCall && !slices.ContainsFunc(slices.Collect(maps.Values(options)), func(o limit.Options) bool { return !reflect.ValueOf(o).FieldByIndex(of.Index).IsZero() }) {
			t.Errorf("limit.Options.%s: got no row with it, want one", of.Name)
		}
	}
	for _, pkg := range []string{"limit", "lock", "idempotency", "stock", "callback", "gate"} {
		files, err := parser.ParseDir(token.NewFileSet(), "../../"+pkg, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // no build tags are used
		if err != nil || len(files) == 0 {
			t.Fatalf("package %s: got %d packages, %v, want one", pkg, len(files), err)
		}
		for _, file := range files[pkg].Files {
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok || !f.Name.IsExported() {
					continue
				}
				of, name := receiver(f), f.Name.Name
				var known bool
				switch {
				case name == "Warm" && of != "":
					_, known = primitives[pkg+"."+of]
				case pkg == "limit" && name == "PolicyName":
					_, known = kinds[of]
				case pkg == "limit" && of == "" && result(f) == "Policy":
					_, known = features[name]
				default:
					continue
				}
				if !known {
					t.Errorf("%s.%s: got no row of it in the tables of this file, want one", pkg, strings.TrimPrefix(of+"."+name, "."))
				}
			}
		}
	}
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	name, _ := of.(*ast.Ident)
	return name.Name
}

func result(f *ast.FuncDecl) string {
	if f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return ""
	}
	name, _ := f.Type.Results.List[0].Type.(*ast.Ident)
	return cmp.Or(name, new(ast.Ident)).Name
}
