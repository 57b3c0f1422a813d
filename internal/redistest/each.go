package redistest

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Target is something that a test can run on.
type Target string

// The targets of [Each].
const (
	OnMiniredis  Target = "miniredis" // its own; keys expire by the clock
	OnStandalone Target = "standalone"
	OnCluster    Target = "cluster"
)

// Each runs a test as parallel subtests on the targets, by default on all
// three. rdb is the library's client and admin the harness', who are told apart
// by the servers but not by miniredis. The prefix is for the test's keys; one
// that never expires fails it.
func Each(t *testing.T, run func(t *testing.T, rdb, admin redis.UniversalClient, prefix string), on ...Target) {
	t.Helper()
	if len(on) == 0 {
		on = []Target{OnMiniredis, OnStandalone, OnCluster}
	}
	for _, target := range on {
		t.Run(string(target), func(t *testing.T) {
			t.Parallel()
			rdb, admin, prefix := connect(t, target)
			run(t, rdb, admin, prefix)
		})
	}
}

// EachReal runs a test as parallel subtests on a real server and a real cluster. Each call
// of connect makes another client.
func EachReal(t *testing.T, run func(t *testing.T, connect func() redis.UniversalClient, prefix string)) {
	t.Helper()
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		srv := Standalone(t)
		prefix := srv.Prefix(t)
		run(t, func() redis.UniversalClient { return srv.Client(t) }, prefix)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cl := Cluster(t)
		prefix := cl.Prefix(t)
		run(t, func() redis.UniversalClient { return cl.Client(t) }, prefix)
	})
}

// Time returns what the server's clock shows.
func Time(tb testing.TB, rdb redis.UniversalClient) time.Time {
	tb.Helper()
	now, err := rdb.Time(tb.Context()).Result()
	if err != nil {
		tb.Fatal(err)
	}
	return now
}

func connect(t *testing.T, target Target) (rdb, admin redis.UniversalClient, prefix string) {
	t.Helper()
	switch target {
	case OnMiniredis:
		m := miniredis.RunT(t)
		m.ClockTTL(true)
		o := &redis.Options{Addr: m.Addr()}
		patient(o)
		rdb = redis.NewClient(o)
		t.Cleanup(func() { rdb.Close() })
		prefix = Prefix(t)
		t.Cleanup(func() { AssertNoImmortalKeys(t, rdb, prefix) })
		return rdb, rdb, prefix
	case OnStandalone:
		s := Standalone(t)
		return s.Client(t, patient), s.Admin(t), s.Prefix(t)
	case OnCluster:
		c := Cluster(t)
		return c.Client(t, patientCluster), c.Admin(t), c.Prefix(t)
	default:
		t.Fatalf("redistest: no target %q", target)
		return nil, nil, ""
	}
}
