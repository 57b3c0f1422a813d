package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	theirrate "github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	ourrate "github.com/neap-go/neap/contrib/redis_rate"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/ratesuite"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/neaptest"
)

// TestRedisRateKeepsItsPromises runs the suite that contrib/redis_rate runs on itself.
func TestRedisRateKeepsItsPromises(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	server := ratesuite.Place{Connect: func(t *testing.T) redis.UniversalClient {
		t.Helper()
		rdb := redis.NewClient(&redis.Options{Addr: s.addr})
		t.Cleanup(func() { rdb.Close() })
		return rdb
	}, Period: 100 * time.Millisecond}
	bubble := ratesuite.Place{Connect: func(t *testing.T) redis.UniversalClient {
		t.Helper()
		return neaptest.New(t).Client()
	}, Period: time.Second, Bubble: true}
	for where, at := range map[string]ratesuite.Place{"server": server, "bubble": bubble} {
		t.Run("redis_rate on a "+where, func(t *testing.T) {
			t.Parallel()
			at.Prefix = "theirs"
			ratesuite.Run(t, ratesuite.Package[theirrate.Limit, theirrate.Result]{
				NewLimiter: func(rdb redis.UniversalClient) ratesuite.Limiter[theirrate.Limit, theirrate.Result] {
					return theirrate.NewLimiter(rdb)
				},
				PerSecond: theirrate.PerSecond, PerMinute: theirrate.PerMinute, PerHour: theirrate.PerHour,
			}, at)
		})
	}
}

// TestAnImportPathIsTheMigration: whatever redis_rate exports has the same name and the same type here.
// The names of both packages are the same, so the types are written the same.
func TestAnImportPathIsTheMigration(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]any{
		"PerSecond": {theirrate.PerSecond, ourrate.PerSecond},
		"PerMinute": {theirrate.PerMinute, ourrate.PerMinute},
		"PerHour":   {theirrate.PerHour, ourrate.PerHour},
		"Limit":     {theirrate.Limit{}, ourrate.Limit{}},
		"Result":    {theirrate.Result{}, ourrate.Result{}},
	} {
		t1, t2 := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1])
		if t1.String() != t2.String() {
			t.Errorf("%s is a %v, want a %v", name, t2, t1)
		}
		if t1.Kind() == reflect.Struct {
			wantFields(t, t2, t1)
			wantMethods(t, t2, t1)
		}
	}
	wantMethods(t, reflect.TypeFor[*ourrate.Limiter](), reflect.TypeFor[*theirrate.Limiter]())
	asked, offered := reflect.TypeOf(ourrate.NewLimiter).In(0), reflect.TypeOf(theirrate.NewLimiter).In(0)
	if !offered.Implements(asked) || reflect.TypeOf(ourrate.NewLimiter).Out(0).String() != "*redis_rate.Limiter" {
		t.Errorf("NewLimiter is a %T, want it to take every %v", ourrate.NewLimiter, offered)
	}
	known := []string{"NewLimiter", "PerSecond", "PerMinute", "PerHour", "Limiter", "Limit", "Result"}
	if exported := exportedBy(t, "github.com/go-redis/redis_rate/v10"); !slices.Equal(exported, slices.Sorted(slices.Values(known))) {
		t.Errorf("redis_rate exports %v, want %v, which this test compares", exported, known)
	}
}

func wantFields(t *testing.T, got, want reflect.Type) {
	t.Helper()
	for i := range want.NumField() {
		f := want.Field(i)
		if i >= got.NumField() || got.Field(i).Name != f.Name || got.Field(i).Type.String() != f.Type.String() {
			t.Errorf("%v has other fields, want %s %v as number %d", got, f.Name, f.Type, i)
		}
	}
}

func wantMethods(t *testing.T, got, want reflect.Type) {
	t.Helper()
	for m := range want.Methods() {
		if own, ok := got.MethodByName(m.Name); !ok || own.Type.String() != m.Type.String() {
			t.Errorf("%v has no method %s %v, want one", got, m.Name, m.Type)
		}
	}
}

// exportedBy are the names at the top of a package.
func exportedBy(t *testing.T, module string) (names []string) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names = append(names, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						names = append(names, s.Name.Name)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							names = append(names, name.Name)
						}
					}
				}
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// TestWhereRedisRateDiffers holds docs/coming-from/redis_rate.md to what it says of redis_rate. If one of these
// fails after an update, redis_rate keeps a promise that it did not, and the page is wrong.
func TestWhereRedisRateDiffers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := neaptest.New(t).Client()
		l, l2 := theirrate.NewLimiter(rdb), ourrate.NewLimiter(rdb)
		ctx := t.Context()

		// A fraction of a permit that has come back is taken, and not granted.
		rate := theirrate.Limit{Rate: 1, Burst: 2, Period: 10 * time.Second}
		granted, granted2 := 0, 0
		l.AllowN(ctx, "fraction", rate, 2)
		l2.AllowN(ctx, "fraction", ourrate.Limit(rate), 2)
		for range 20 {
			time.Sleep(15 * time.Second)
			granted += asked(l.AllowAtMost(ctx, "fraction", rate, 2))(t).Allowed
			granted2 += asked(l2.AllowAtMost(ctx, "fraction", ourrate.Limit(rate), 2))(t).Allowed
		}
		if granted != 20 || granted2 != 30 {
			t.Errorf("AllowAtMost, 300 seconds of a permit in 10: got %d of redis_rate and %d of contrib, want 20 and 30", granted, granted2)
		}

		// A denial tells 0 remaining, whatever there is.
		hourly := theirrate.PerHour(10)
		l.AllowN(ctx, "denied", hourly, 7)
		l2.AllowN(ctx, "denied", ourrate.Limit(hourly), 7)
		if got, got2 := asked(l.AllowN(ctx, "denied", hourly, 4))(t), asked(l2.AllowN(ctx, "denied", ourrate.Limit(hourly), 4))(t); got.Remaining != 0 || got2.Remaining != 3 {
			t.Errorf("Remaining of a denial while 3 are left: got %d of redis_rate and %d of contrib, want 0 and 3", got.Remaining, got2.Remaining)
		}

		// An n below 0 gives back.
		if got := asked(l.AllowN(ctx, "denied", hourly, -7))(t); got.Remaining != 10 {
			t.Errorf("AllowN(-7) of redis_rate: got %d remaining, want 10", got.Remaining)
		}

		// Another limit of a key has its state as a time.
		l.AllowN(ctx, "changed", theirrate.PerSecond(10), 10)
		l2.AllowN(ctx, "changed", ourrate.PerSecond(10), 10)
		if got, got2 := asked(l.AllowN(ctx, "changed", theirrate.PerMinute(60), 0))(t), asked(l2.AllowN(ctx, "changed", ourrate.PerMinute(60), 0))(t); got.Remaining != 59 || got2.Remaining != 50 {
			t.Errorf("10 taken, and then another limit: got %d remaining of redis_rate and %d of contrib, want 59 and 50", got.Remaining, got2.Remaining)
		}

		// The floating point of redis_rate tells one permit too few.
		wrong, wrong2 := 0, 0
		for range 100 {
			time.Sleep(1234567 * time.Microsecond)
			if asked(l.Allow(ctx, "float", theirrate.PerSecond(10)))(t).Remaining != 9 {
				wrong++
			}
			if asked(l2.Allow(ctx, "float", ourrate.PerSecond(10)))(t).Remaining != 9 {
				wrong2++
			}
		}
		if wrong == 0 || wrong2 != 0 {
			t.Errorf("Remaining after the first of 10 permits: got %d wrong of redis_rate and %d of contrib, want some and 0", wrong, wrong2)
		}
		t.Logf("Remaining of redis_rate was wrong %d times of 100", wrong)
	})
}

// TestALostReplyOfRedisRate has each reply of a script be lost with its connection. go-redis, with its default
// options, sends the script of redis_rate four times, and each of them takes a permit.
func TestALostReplyOfRedisRate(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	proxy := srv.Proxy(t)
	clean, lossy := srv.Admin(t), srv.Admin(t, func(o *redis.Options) { o.Dialer = proxy.Dial })
	look, look2 := theirrate.NewLimiter(clean), ourrate.NewLimiter(clean)
	asked(look.AllowN(t.Context(), "k", theirrate.PerHour(10), 0))(t) // tells the server the scripts
	asked(look2.AllowN(t.Context(), "k", ourrate.PerHour(10), 0))(t)
	proxy.Lose(redistest.EOF, -1, "evalsha")
	if _, err := theirrate.NewLimiter(lossy).Allow(t.Context(), "k", theirrate.PerHour(10)); err == nil {
		t.Error("redis_rate without a reply: got no error, want one")
	}
	if _, err := ourrate.NewLimiter(lossy).Allow(t.Context(), "k", ourrate.PerHour(10)); !errors.Is(err, script.ErrMaybeExecuted) {
		t.Errorf("contrib without a reply: got %v, want script.ErrMaybeExecuted", err)
	}
	got, got2 := asked(look.AllowN(t.Context(), "k", theirrate.PerHour(10), 0))(t), asked(look2.AllowN(t.Context(), "k", ourrate.PerHour(10), 0))(t)
	if got.Remaining != 6 || got2.Remaining != 9 {
		t.Errorf("10 permits, after one call without a reply: got %d of redis_rate and %d of contrib, want 6 and 9", got.Remaining, got2.Remaining)
	}
}

// asked ends the test if there is an error.
func asked[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
