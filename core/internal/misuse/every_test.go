package misuse_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/callback"
	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/outgoing"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// made are the exported types that a constructor makes: each of their methods must report
// a nil or zero receiver. plain are the types whose zero value is usable.
var (
	made = []reflect.Type{
		reflect.TypeFor[script.Runner](), reflect.TypeFor[script.Script](), reflect.TypeFor[limit.Limiter](),
		reflect.TypeFor[inflight.Limiter](), reflect.TypeFor[lock.Locker](), reflect.TypeFor[lock.Lock](), reflect.TypeFor[lock.Locks](),
		reflect.TypeFor[idempotency.Guard](), reflect.TypeFor[idempotency.Claim](),
		reflect.TypeFor[stock.Stock](), reflect.TypeFor[stock.Reservation](), reflect.TypeFor[callback.Endpoint](), reflect.TypeFor[callback.WeChatPayKeys](),
		reflect.TypeFor[outgoing.Calls](), reflect.TypeFor[outgoing.Call](), reflect.TypeFor[adapter.Body](),
	}
	plain = []reflect.Type{
		reflect.TypeFor[script.Error](), reflect.TypeFor[inflight.Slot](), reflect.TypeFor[limit.Decision](), reflect.TypeFor[limit.Joint](),
		reflect.TypeFor[limit.CostError](), reflect.TypeFor[limit.LimitedError](), reflect.TypeFor[limit.DroppedError](), reflect.TypeFor[store.FailMode](),
		reflect.TypeFor[limit.TokenBucket](), reflect.TypeFor[limit.FixedWindow](), reflect.TypeFor[limit.CalendarWindow](), reflect.TypeFor[limit.SlidingWindow](),
		reflect.TypeFor[limit.SlidingLog](), reflect.TypeFor[limit.Policies](), reflect.TypeFor[lock.Rerun](), reflect.TypeFor[gate.Reply](), reflect.TypeFor[gate.List](),
		reflect.TypeFor[callback.EventError](), reflect.TypeFor[store.Store](), reflect.TypeFor[store.Observer](), reflect.TypeFor[adapter.End](),
	}
)

// TestNoTypeIsForgotten looks for the exported types with exported methods.
func TestNoTypeIsForgotten(t *testing.T) {
	t.Parallel()
	var known []string
	for _, of := range slices.Concat(made, plain) {
		known = append(known, of.String())
	}
	found := 0
	for _, dir := range []string{"script", "store", "limit", "inflight", "lock", "idempotency", "stock", "gate", "gate/adapter", "callback", "outgoing"} {
		files, err := parser.ParseDir(token.NewFileSet(), "../../"+dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // no build tags are used
		if err != nil {
			t.Fatal(err)
		}
		for _, pkg := range files {
			for _, file := range pkg.Files {
				for _, decl := range file.Decls {
					f, ok := decl.(*ast.FuncDecl)
					if !ok || f.Recv == nil || !f.Name.IsExported() {
						continue
					}
					of := f.Recv.List[0].Type
					if star, ok := of.(*ast.StarExpr); ok {
						of = star.X
					}
					name, ok := of.(*ast.Ident)
					if !ok || !name.IsExported() {
						continue
					}
					found++
					if full := path.Base(dir) + "." + name.Name; !slices.Contains(known, full) {
						t.Errorf("%s: got the method %s in neither table of this test, want it in one",
							full, f.Name.Name)
					}
				}
			}
		}
	}
	if found < 80 {
		t.Errorf("methods: got %d, want at least 80", found)
	}
}

// outcome is how a call ended.
type outcome struct {
	panicked any
	err      error
	returns  bool // an error, if there is one
}

// call calls a method with arguments of the right types and the given context.
func call(m reflect.Value, ctx context.Context, fn bool) (o outcome) { //nolint:revive // a method comes before its arguments
	defer func() { o.panicked = recover() }()
	var args []reflect.Value
	of := m.Type()
	for i := range of.NumIn() {
		in := of.In(i)
		arg := reflect.New(in).Elem()
		switch {
		case in == reflect.TypeFor[context.Context]():
			if ctx != nil {
				arg.Set(reflect.ValueOf(ctx))
			}
		case in == reflect.TypeFor[time.Time]():
			arg.Set(reflect.ValueOf(time.Now()))
		case in == reflect.TypeFor[time.Duration]():
			arg.Set(reflect.ValueOf(time.Second))
		case in == reflect.TypeFor[idempotency.Outcome]():
			arg.Set(reflect.ValueOf(idempotency.NothingDone()))
		case in == reflect.TypeFor[lock.Rerun]():
			arg.Set(reflect.ValueOf(lock.Never))
		case in.Kind() == reflect.String:
			arg.SetString("fresh")
		case arg.CanInt():
			arg.SetInt(1)
		case in == reflect.TypeFor[[]string]():
			arg.Set(reflect.ValueOf([]string{"{k}"}))
		case in == reflect.TypeFor[*script.Script]():
			arg.Set(reflect.ValueOf(script.New("one.lua", "return 1")))
		case in.Kind() == reflect.Func && fn:
			arg.Set(reflect.MakeFunc(in, func([]reflect.Value) (out []reflect.Value) {
				for result := range in.Outs() {
					out = append(out, reflect.Zero(result))
				}
				return out
			}))
		}
		if of.IsVariadic() && i == of.NumIn()-1 {
			continue
		}
		args = append(args, arg)
	}
	for _, out := range m.Call(args) {
		if out.Type() == reflect.TypeFor[error]() {
			o.returns = true
			o.err, _ = reflect.TypeAssert[error](out)
		}
		if out.Kind() == reflect.Func && out.Type().In(0).Kind() == reflect.Func { // an iterator
			o.returns = true
			yield := reflect.MakeFunc(out.Type().In(0), func(in []reflect.Value) []reflect.Value {
				o.err, _ = reflect.TypeAssert[error](in[len(in)-1])
				return []reflect.Value{reflect.ValueOf(false)}
			})
			out.Call([]reflect.Value{yield})
		}
	}
	return o
}

// said is the text of a mistake that an error or a panic named. It is empty if Go itself
// reported the mistake.
func (o outcome) said() string {
	if _, is := o.panicked.(runtime.Error); is {
		return ""
	}
	if o.panicked != nil {
		return fmt.Sprint(o.panicked)
	}
	return fmt.Sprint(o.err)
}

// TestNilAndZeroReceiversAreNamed calls each exported method of a nil and of a zero
// value.
func TestNilAndZeroReceiversAreNamed(t *testing.T) {
	t.Parallel()
	calls := 0
	for _, of := range made {
		for kind, receiver := range map[string]reflect.Value{"nil": reflect.Zero(reflect.PointerTo(of)), "zero": reflect.New(of)} {
			for i := range receiver.NumMethod() {
				name := fmt.Sprintf("%s of a %s %s", receiver.Type().Method(i).Name, kind, of)
				o := call(receiver.Method(i), t.Context(), true)
				calls++
				if got := o.said(); !strings.Contains(got, "a nil or zero "+of.Name()) {
					t.Errorf("%s: got %q (%v), want \"a nil or zero %s\" in it", name, got, o.panicked, of.Name())
				}
				if o.returns && o.panicked != nil {
					t.Errorf("%s: got a panic, want an error, which it can return", name)
				}
			}
		}
	}
	if calls < 120 {
		t.Errorf("calls: got %d, want at least 120", calls)
	}
	for _, of := range plain {
		receiver := reflect.New(of)
		for i := range receiver.NumMethod() {
			if o := call(receiver.Method(i), t.Context(), true); o.panicked != nil && !strings.Contains(o.said(), "a nil or zero "+of.Name()) {
				t.Errorf("%s of a zero %s: got the panic %v, want none, or the mistake named",
					receiver.Type().Method(i).Name, of, o.panicked)
			}
		}
	}
	var none *inflight.Slot
	if err := none.Release(t.Context()); err != nil {
		t.Errorf("Release of a nil Slot, which its doc comment allows: got %v, want no error", err)
	}
	for range (*limit.Decision)(nil).States() {
		t.Error("a nil Decision: got a State, want none")
	}
}

// usable makes a new value of each type that has methods with a context.
func usable(t *testing.T, rdb redis.UniversalClient) map[string]func() any {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	const budget = 5 * time.Second
	runner, err := script.NewRunner(rdb, &script.Options{Budget: budget})
	must(err)
	policies := []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}
	limiter, err := limit.New(rdb, "misuse", policies, &limit.Options{Budget: budget})
	must(err)
	local, err := limit.NewLocal("misuse", policies, nil)
	must(err)
	slots, err := inflight.New(rdb, "misuse", 1000, &inflight.Options{Budget: budget})
	must(err)
	localSlots, err := inflight.NewLocal("misuse", 1000, nil)
	must(err)
	held, err := limit.New(rdb, "misuse", policies, &limit.Options{Budget: budget, Holds: true})
	must(err)
	partners, err := outgoing.New(held, nil)
	must(err)
	locker, err := lock.New(rdb, "misuse", &lock.Options{Budget: budget})
	must(err)
	guard, err := idempotency.New(rdb, "misuse", idempotency.Retry{}, &idempotency.Options{Budget: budget})
	must(err)
	shop, err := stock.New(rdb, "misuse", &stock.Options{Budget: budget})
	must(err)
	_, err = shop.Open(t.Context(), "item", 1000, time.Now().Add(time.Hour))
	must(err)
	n := 0
	fresh := func() string { n++; return fmt.Sprint("key", n) }
	return map[string]func() any{
		"Runner":             func() any { return runner },
		"Limiter":            func() any { return limiter },
		"local Limiter":      func() any { return local },
		"Concurrency":        func() any { return slots },
		"local Concurrency":  func() any { return localSlots },
		"Limiter with holds": func() any { return held },
		"Calls":              func() any { return partners },
		"Call":               func() any { c, err := partners.Begin(t.Context(), fresh(), 1, nil); must(err); return c },
		"Locker":             func() any { return locker },
		"Guard":              func() any { return guard },
		"Stock":              func() any { return shop },
		"Slot":               func() any { s, err := slots.Try(t.Context(), "s"); must(err); return s },
		"Lock":               func() any { l, err := locker.Try(t.Context(), fresh()); must(err); return l },
		"Locks":              func() any { ls, err := locker.AcquireAll(t.Context(), fresh(), fresh()); must(err); return ls },
		"Claim":              func() any { run, err := guard.Begin(t.Context(), fresh(), ""); must(err); return run.Claim },
		"Reservation": func() any {
			r, err := shop.Reserve(t.Context(), "item", fresh(), "id", nil)
			must(err)
			return r
		},
	}
}

// TestANilContextIsNamed calls each method that takes a context with a nil context, and
// each method that takes a function with a nil function. Only what errors are told to may be nil.
func TestANilContextIsNamed(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	calls := 0
	for name, make := range usable(t, srv.Client(t)) {
		of := reflect.TypeOf(make())
		for i := range of.NumMethod() {
			m := of.Method(i)
			takes := func(is func(reflect.Type) bool) bool {
				return slices.ContainsFunc(slices.Collect(m.Type.Ins()), is)
			}
			if !takes(func(in reflect.Type) bool { return in == reflect.TypeFor[context.Context]() }) {
				continue
			}
			calls++
			where := fmt.Sprintf("%s.%s", name, m.Name)
			if got := call(reflect.ValueOf(make()).Method(i), nil, true).said(); !strings.Contains(got, "ctx is nil") {
				t.Errorf("%s with a nil ctx: got %q, want \"ctx is nil\" in it", where, got)
			}
			if takes(func(in reflect.Type) bool { return in.Kind() == reflect.Func && in != reflect.TypeFor[func(error)]() }) {
				if got := call(reflect.ValueOf(make()).Method(i), t.Context(), false); !strings.Contains(got.said(), "fn is nil") || got.panicked != nil {
					t.Errorf("%s with a nil fn: got %q, want the error \"fn is nil\"", where, got.said())
				}
			}
		}
	}
	if calls < 50 {
		t.Errorf("calls: got %d, want at least 50", calls)
	}
	for name, fn := range map[string]any{
		"lock.FromContext": lock.FromContext, "idempotency.FromContext": idempotency.FromContext,
		"stock.FromContext": stock.FromContext, "stock.NewContext": stock.NewContext,
		"limit.FromContext": limit.FromContext, "limit.NewContext": limit.NewContext,
	} {
		if got := call(reflect.ValueOf(fn), nil, true).said(); !strings.Contains(got, "ctx is nil") {
			t.Errorf("%s with a nil ctx: got %q, want \"ctx is nil\" in it", name, got)
		}
	}
}

// TestAZeroClientIsRefused by each constructor.
func TestAZeroClientIsRefused(t *testing.T) {
	t.Parallel()
	var none *redis.Client
	var noRing *redis.Ring
	var universal redis.UniversalClient
	for _, rdb := range []script.Client{nil, none, noRing, universal, &redis.Client{}, &redis.ClusterClient{}, &redis.Ring{}, &redis.AutoPipeliner{}} {
		for name, err := range map[string]error{
			"store":  func() error { _, err := store.Open(rdb, nil); return err }(),
			"script": func() error { _, err := script.NewRunner(rdb, nil); return err }(),
			"limit": func() error {
				_, err := limit.New(rdb, "n", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
				return err
			}(),
			"concurrency": func() error { _, err := inflight.New(rdb, "n", 1, nil); return err }(),
			"lock":        func() error { _, err := lock.New(rdb, "n", nil); return err }(),
			"idempotency": func() error {
				_, err := idempotency.New(rdb, "n", idempotency.Retry{}, nil)
				return err
			}(),
			"stock": func() error { _, err := stock.New(rdb, "n", nil); return err }(),
		} {
			if !errors.Is(err, script.ErrClient) || !strings.Contains(err.Error(), "pass a") {
				t.Errorf("%s with the client %T (nil or zero): got %v, want ErrClient with a remedy", name, rdb, err)
			}
		}
	}
}
