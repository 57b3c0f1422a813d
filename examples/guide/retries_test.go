package guide

import (
	"errors"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
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
				s.Error(err)
			}
			return s.number(s.key)
		},
		holds: 1,
	}.run(t, redistest.OnStandalone)
}

// TestACallWithAName has both sent by go-redis, retries and all.
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
		asks: "which visit the second was, says a reply that came when it was sent again",
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
		asks: "how many exports are running, after the one that asked was told nothing and has gone",
		usual: func(s scene) int64 {
			rdb, lose := s.lossy(func(tb testing.TB, change ...func(*redis.Options)) *redis.Client {
				sentOnce := func(o *redis.Options) { o.MaxRetries = -1 }
				return redistest.Standalone(tb).Admin(tb, append(change, sentOnce)...)
			})
			lose("incr")
			if err := ExportByCounter(s.Context(), rdb, s.key, func() { s.Error("it ran") }); err == nil {
				s.Error("it was told")
			}
			return int64(s.number(s.key))
		},
		breaks: 1,
		neap: func(s scene) int64 {
			rdb, lose := s.lossy(redistest.Standalone(s.T).Client)
			exports := s.exports(rdb)
			s.must(exports.Warm(s.Context()))
			lose("evalsha")
			if err := Export(s.Context(), exports, "tenant-17", func() { s.Error("it ran") }); err == nil {
				s.Error("it was told")
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
			t.Errorf("of calls inside each other %d ran, want [1 2]", ran)
		}
		running, err := exports.InFlight(s.Context(), "tenant-17")
		if s.must(err); running != 0 {
			t.Errorf("%d are running when all are through, want 0", running)
		}
	})
}

// exports are two at a time.
func (s scene) exports(rdb redis.UniversalClient) *limit.Concurrency {
	s.Helper()
	opts := twoExports
	opts.Budget = patience
	exports, err := limit.NewConcurrency(storetest.At(s, rdb, s.key), "exports", 2, &opts)
	s.must(err)
	return exports
}
