package arch

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/nethttp"
)

// The way of a request from the adapter to the client of Redis has at most so many files
// and functions.
const (
	mostFiles     = 15
	mostFunctions = 25
)

// TestTheWayToRedisIsStraight follows what a gate asks Redis on behalf of a request whose
// caller is alone: it never comes back into a package that it has left. docs/design.md
// describes the way, and names its files.
func TestTheWayToRedisIsStraight(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	queued := func() (*store.Store, *ways) {
		rdb, w := srv.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true }), new(ways)
		rdb.AddHook(w)
		st, err := store.Open(rdb, &store.Options{Queue: store.Queued, Budget: time.Minute, Prefix: redistest.Prefix(t)})
		if err != nil {
			t.Fatal(err)
		}
		return st, w
	}
	key := gate.ByHeader("X-Key")
	limited, ofLimit := queued()
	limiter, err := limit.New(limited, "way", []limit.Policy{limit.FixedWindow{Limit: 100, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	guarded, ofGuard := queued()
	guard, err := idempotency.New(guarded, "way", idempotency.Retry{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		gate  gate.Gate
		ways  *ways
		calls int // of a request
	}{
		"a rate limit":         {gate.RateLimit(limiter, key, nil), ofLimit, 1},
		"an idempotent method": {gate.Idempotent(guard, key, nil), ofGuard, 2},
	} {
		handler := nethttp.Middleware(c.gate)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		request, ways := 0, [][]runtime.Frame(nil)
		redistest.Await(t, time.Minute, name+" whose calls go by themselves", func() bool { // they do if the script is loaded and the process has CPU to spare
			request++
			c.ways.take()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			r.Header.Set("X-Key", fmt.Sprint(request))
			r.Header.Set("Idempotency-Key", fmt.Sprintf("%q", strconv.Itoa(request)))
			handler.ServeHTTP(httptest.NewRecorder(), r)
			ways = c.ways.take()
			return len(ways) == c.calls && !slices.ContainsFunc(ways, func(way []runtime.Frame) bool {
				return !strings.HasPrefix(way[0].Function, module+"/nethttp.")
			})
		})
		for _, way := range ways {
			check(t, name, way)
		}
	}
}

func check(t *testing.T, name string, way []runtime.Frame) {
	t.Helper()
	var packages, functions []string
	files := map[string]bool{}
	for _, f := range way {
		dir, name, _ := strings.Cut(inModule(path.Dir(f.Function))+"/"+path.Base(f.Function), ".")
		where := strings.TrimPrefix(dir, "/")
		functions, files[f.File] = append(functions, where+"."+name), true
		if len(packages) == 0 || packages[len(packages)-1] != where {
			if slices.Contains(packages, where) {
				t.Errorf("%s: got the way %q, want it not to come back into %s", name, append(packages, where), where)
			}
			packages = append(packages, where)
		}
	}
	if len(files) > mostFiles || len(functions) > mostFunctions {
		t.Errorf("%s: got %d files and %d functions, want %d and %d at most:\n%s", name, len(files), len(functions), mostFiles, mostFunctions, strings.Join(functions, "\n"))
	}
	t.Logf("%s: %d files, %d functions: %s", name, len(files), len(functions), strings.Join(functions, " → "))
	design, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	for file := range files {
		if !strings.Contains(string(design), "`"+path.Base(file)+"`") {
			t.Errorf("%s: docs/design.md does not name %s", name, file)
		}
	}
	for _, want := range []string{"nethttp", "core/gate", "core/store", "core/internal/queue", "core/internal/wire"} {
		if !slices.Contains(packages, want) {
			t.Errorf("%s: got the way %q, want it to lead through %s", name, packages, want)
		}
	}
}

// ways is a hook that notes from where commands come, outermost first.
type ways struct {
	mu  sync.Mutex
	all [][]runtime.Frame
}

// take returns what was noted since the last take.
func (w *ways) take() (all [][]runtime.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, w.all = w.all, nil
	return all
}

func (*ways) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*ways) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *ways) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		var way []runtime.Frame
		callers := make([]uintptr, 200)
		frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if under(f.Function, module) && !strings.HasPrefix(f.Function, module+"/internal/") || strings.HasPrefix(f.Function, module+"/internal/gatehttp.") {
				way = append(way, f)
			}
		}
		slices.Reverse(way)
		w.mu.Lock()
		w.all = append(w.all, way)
		w.mu.Unlock()
		return next(ctx, cmd)
	}
}
