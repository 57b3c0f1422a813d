package redistest

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestPrefixIsUniqueAndSafe(t *testing.T) {
	t.Parallel()
	t.Run("A name/with {braces}: and ünicode, longer than any prefix", func(t *testing.T) {
		t.Parallel()
		safe := regexp.MustCompile(`^neap:[a-z0-9-]{1,32}$`)
		seen := map[string]bool{}
		for range 100 {
			p := Prefix(t)
			if !safe.MatchString(p) || seen[p] {
				t.Fatalf("got the prefix %q, seen before: %t, want a safe one that is new", p, seen[p])
			}
			seen[p] = true
		}
	})
}

func TestImmortalKeysAreFound(t *testing.T) {
	t.Parallel()
	for _, target := range []Target{OnMiniredis, OnStandalone, OnCluster} {
		t.Run(string(target), func(t *testing.T) {
			t.Parallel()
			_, rdb, prefix := connect(t, target)
			set := func(key string, ttl time.Duration) {
				if err := rdb.Set(t.Context(), key, "v", ttl).Err(); err != nil {
					t.Fatal(err)
				}
			}
			check := func() string {
				return fatal(t, func(tb testing.TB) { AssertNoImmortalKeys(tb, rdb, prefix) })
			}
			for _, subject := range []string{"a", "b", "c", "d", "e", "f"} {
				set(prefix+":{"+subject+"}", time.Minute)
			}
			if said := check(); said != "" {
				t.Fatalf("every key has a TTL: got the failure %s, want none", said)
			}
			for _, subject := range []string{"a", "b", "c", "d", "e", "f"} {
				key := prefix + ":{" + subject + "}"
				set(key, 0)
				if said := check(); !strings.Contains(said, key) {
					t.Errorf("%s never expires: got the failure %q, want one that names it", key, said)
				}
				set(key, time.Minute)
			}
		})
	}
}

func TestAServersPrefixAssertsAtTheEnd(t *testing.T) {
	t.Parallel()
	s := NewStandalone(t)
	said := fatal(t, func(tb testing.TB) {
		if err := s.Admin(t).Set(t.Context(), s.Prefix(tb), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	})
	if !strings.Contains(said, "never expires") {
		t.Errorf("a key that never expires: got the failure %q, want one that says so", said)
	}
}

func TestEachExpiresKeysByTheClock(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, _, rdb redis.UniversalClient, prefix string) {
		if err := rdb.Set(t.Context(), prefix, "v", 50*time.Millisecond).Err(); err != nil {
			t.Fatal(err)
		}
		Await(t, 30*time.Second, "the key to expire", func() bool {
			return rdb.Exists(t.Context(), prefix).Val() == 0
		})
	})
}

func TestCommandStats(t *testing.T) {
	t.Parallel()
	for target, rdb := range map[Target]redis.UniversalClient{
		OnStandalone: NewStandalone(t).Admin(t),
		OnCluster:    NewCluster(t).Admin(t),
	} {
		t.Run(string(target), func(t *testing.T) {
			t.Parallel()
			count := func() Stat { return CommandStats(t, rdb)["set"] }
			for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
				if err := rdb.Set(t.Context(), key, "v", time.Minute).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if got := count(); got.Calls != 6 || got.Usec < 1 {
				t.Errorf("after 6 SET: got %+v, want 6 calls and some time", got)
			}
			ResetStats(t, rdb)
			if got := count(); got != (Stat{}) {
				t.Errorf("after the reset: got %+v, want all 0", got)
			}
		})
	}
}

func TestOpsScale(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n     int
		scale float64
		want  int
	}{
		{100_000, 1, 100_000}, {100_000, 0.1, 10_000}, {500, 0.1, 100}, {50, 0.1, 50}, {100_000, 2, 200_000},
	} {
		if got := scaled(c.n, c.scale); got != c.want {
			t.Errorf("%d at %v: %d, want %d", c.n, c.scale, got, c.want)
		}
	}
}
