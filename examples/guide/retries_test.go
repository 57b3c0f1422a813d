package guide

import (
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestALostReplyCountsTwice(t *testing.T) {
	t.Parallel()
	pitfall[int]{
		asks: "what the counter says after one visit whose reply was lost",
		usual: func(s scene) int {
			rdb, lose := s.lossy(redistest.Standalone(s.T).Admin)
			s.must(usualCount.Load(s.Context(), rdb).Err())
			lose("evalsha")
			_, err := VisitByScript(s.Context(), rdb, s.key)
			s.must(err) // go-redis sent it again
			return s.number(s.key)
		},
		breaks: 2,
		neap: func(s scene) int {
			rdb, lose := s.lossy(redistest.Standalone(s.T).Client)
			s.rdb = rdb
			runner := s.runner()
			s.must(runner.Load(s.Context(), count))
			lose("evalsha")
			if _, err := Visit(s.Context(), runner, s.key, 1); !errors.Is(err, script.ErrMaybeExecuted) {
				s.Errorf("a visit whose reply was lost: got %v, want ErrMaybeExecuted", err)
			}
			return s.number(s.key)
		},
		holds: 1,
	}.run(t, redistest.OnStandalone)
}

// TestACallWithAName sends both scripts by go-redis, with its retries.
func TestACallWithAName(t *testing.T) {
	t.Parallel()
	visits := func(s scene, script *redis.Script, visit func(redis.Scripter) (int, error)) int {
		rdb, lose := s.lossy(redistest.Standalone(s.T).Admin)
		s.must(script.Load(s.Context(), rdb).Err())
		_, err := visit(rdb)
		s.must(err)
		lose("evalsha")
		n, err := visit(rdb)
		s.must(err)
		return n
	}
	pitfall[int]{
		asks: "the number that the second visit gets, after its first reply was lost",
		usual: func(s scene) int {
			return visits(s, usualCount, func(rdb redis.Scripter) (int, error) { return VisitByScript(s.Context(), rdb, s.key) })
		},
		breaks: 3,
		neap: func(s scene) int {
			return visits(s, countOnce, func(rdb redis.Scripter) (int, error) { return VisitOnce(s.Context(), rdb, s.key) })
		},
		holds: 2,
	}.run(t, redistest.OnStandalone)
}

func TestWhatNobodyGivesBack(t *testing.T) {
	t.Parallel()
	pitfall[int64]{
		asks: "how many exports are running, after the only caller got no reply and gave up",
		usual: func(s scene) int64 {
			rdb, lose := s.lossy(func(tb testing.TB, change ...func(*redis.Options)) *redis.Client {
				sentOnce := func(o *redis.Options) { o.MaxRetries = -1 }
				return redistest.Standalone(tb).Admin(tb, append(change, sentOnce)...)
			})
			lose("incr")
			if err := ExportByCounter(s.Context(), rdb, s.key, s.mustNotRun); err == nil {
				s.Error("an export whose reply was lost: got no error, want one")
			}
			return int64(s.number(s.key))
		},
		breaks: 1,
		neap: func(s scene) int64 {
			rdb, lose := s.lossy(redistest.Standalone(s.T).Client)
			exports := s.exports(rdb)
			s.must(exports.Warm(s.Context()))
			lose("evalsha")
			if err := Export(s.Context(), exports, "tenant-17", s.mustNotRun); err == nil {
				s.Error("an export whose reply was lost: got no error, want one")
			}
			redistest.Await(s.T, patience, "the slot to be taken back", func() bool { return exports.Stats().Undone == 1 })
			running, err := exports.InFlight(s.Context(), "tenant-17")
			s.must(err)
			return running
		},
		holds: 0,
	}.run(t, redistest.OnStandalone)
}

func TestExport(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, key string) {
		s := scene{t, rdb, admin, key}
		exports := s.exports(rdb)
		var ran []int
		var export func(n int)
		export = func(n int) {
			s.must(Export(s.Context(), exports, "tenant-17", func() {
				if ran = append(ran, n); n < 3 {
					export(n + 1)
				}
			}))
		}
		export(1)
		if !slices.Equal(ran, []int{1, 2}) {
			t.Errorf("exports inside each other: got %d run, want [1 2]", ran)
		}
		running, err := exports.InFlight(s.Context(), "tenant-17")
		if s.must(err); running != 0 {
			t.Errorf("running exports after all are done: got %d, want 0", running)
		}
	})
}

// mustNotRun is the work of an export that got no slot.
func (s scene) mustNotRun() {
	s.Error("an export whose reply was lost has run, want an error and no export")
}

// exports makes a limit of two exports at a time.
func (s scene) exports(rdb redis.UniversalClient) *inflight.Limiter {
	s.Helper()
	opts := twoExports
	opts.Budget = patience
	exports, err := inflight.New(storetest.At(s, rdb, s.key), "exports", 2, &opts)
	s.must(err)
	return exports
}
