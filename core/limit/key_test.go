package limit

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

func space(tb testing.TB, secret []byte) *keyspace {
	tb.Helper()
	k, err := newKeyspace("limit", "api", "", secret)
	if err != nil {
		tb.Fatal(err)
	}
	return &k
}

// slotOf is the part of a key that chooses its slot, as Redis reads it.
func slotOf(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return tag
}

// TestKeyShapes is the shape that operators look keys up by.
func TestKeyShapes(t *testing.T) {
	t.Parallel()
	k := space(t, nil)
	for subject, want := range map[string]string{
		"ip=192.0.2.1":           "neap:limit:api:{ip=192.0.2.1}:p",
		"ip=2001:db8::/64":       "neap:limit:api:{ip=2001:db8::/64}:p",
		strings.Repeat("a", 64):  "neap:limit:api:{" + strings.Repeat("a", 64) + "}:p",
		"#ungWv48Bz-pBQUDeXa4iI": "", // looks like a hash, and is hashed
		strings.Repeat("a", 65):  "",
		"a b":                    "", "}": "", "{x}": "", "\x00": "", "\xff\xfe": "", "é": "", "*": "", "\n": "",
	} {
		got := k.key(subject, "p")
		if want == "" && !regexp.MustCompile(`^neap:limit:api:\{#[A-Za-z0-9_-]{43}\}:p$`).MatchString(got) || want != "" && got != want {
			t.Errorf("%q has the key %q, not %q", subject, got, want)
		}
	}
	secret := space(t, []byte("0123456789abcdef"))
	if got := secret.key("ip=192.0.2.1", "p"); !strings.Contains(got, "{#") || got == space(t, []byte("fedcba9876543210")).key("ip=192.0.2.1", "p") {
		t.Errorf("with a secret the key is %q", got)
	}
}

func FuzzKeysNeverCollide(f *testing.F) {
	for _, s := range []string{
		"", "a", "ip=1.2.3.4", "header:x-api-key=1.2.3.4", "{", "}", "{}", "a}:p", "a}b{c", "\x00", "\xff", ":", "#",
		strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("é", 5000),
	} {
		f.Add(s, s+"a")
		f.Add(s, strings.ToUpper(s))
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			return // refused before a key is made
		}
		for _, k := range []*keyspace{space(t, nil), space(t, []byte("0123456789abcdef"))} {
			for _, tail := range []string{"p", "}:p"} {
				x, y := k.key(a, tail), k.key(b, tail)
				if (a == b) != (x == y) {
					t.Errorf("%q and %q have the keys %q and %q", a, b, x, y)
				}
				if (a == b) != (slotOf(x) == slotOf(y)) {
					t.Errorf("%q and %q have the hash tags of %q and %q", a, b, x, y)
				}
				if len(x) > len("neap:limit:api:{}:")+64+len(tail) {
					t.Errorf("%d bytes make a key of %d", len(a), len(x))
				}
			}
		}
	})
}

// TestPoliciesOfASubjectShareASlot asks the cluster itself, and that a
// policy's numbers are part of its key.
func TestPoliciesOfASubjectShareASlot(t *testing.T) {
	t.Parallel()
	cl := redistest.Cluster(t)
	admin := cl.Admin(t)
	for _, subject := range []string{"ip=192.0.2.1", "}{", "{}", "\x00{a}", strings.Repeat("{a}", 4000)} {
		k := space(t, nil)
		want := admin.ClusterKeySlot(t.Context(), k.key(subject, "a")).Val()
		if got := admin.ClusterKeySlot(t.Context(), k.key(subject, "b!window-5-1s")).Val(); got != want {
			t.Errorf("%.20q: slots %d and %d", subject, want, got)
		}
	}
}

func TestChangedNumbersStartAfresh(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for i, p := range []Policy{
			FixedWindow{Name: "p", Limit: 1, Window: time.Hour},
			FixedWindow{Name: "p", Limit: 2, Window: time.Hour},
			FixedWindow{Name: "p", Limit: 1, Window: time.Minute},
			SlidingLog{Name: "p", Limit: 1, Window: time.Minute},
			TokenBucket{Name: "p", Rate: 1, Per: time.Hour},
			FixedWindow{Name: "q", Limit: 1, Window: time.Hour},
		} {
			l, err := New(rdb, "roll", []Policy{p}, &Options{Prefix: prefix, Budget: 5 * time.Second, Fail: FailClosed})
			if err != nil {
				t.Fatal(err)
			}
			if d, err := l.Take(t.Context(), "s"); err != nil || !d.Allowed {
				t.Errorf("policy %d: %+v, %v", i, d, err)
			}
		}
		if keys := keysOf(t, admin, prefix); len(keys) != 6 || !strings.Contains(fmt.Sprint(keys), ":limit:roll:{s}:p!window-2-1h") {
			t.Errorf("the keys are %q", keys)
		}
	})
}

// TestALogIsSmall holds a log of 1,000 permits to 12 bytes each.
func TestALogIsSmall(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb, admin := srv.Client(t), srv.Admin(t)
	prefix := srv.Prefix(t)
	l, err := New(rdb, "log", []Policy{SlidingLog{Limit: 1000, Window: time.Hour}}, &Options{Prefix: prefix, Budget: 5 * time.Second, Fail: FailClosed})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if d, err := l.Take(t.Context(), "s"); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	key := keysOf(t, admin, prefix)[0]
	if size := admin.MemoryUsage(t.Context(), key, 0).Val(); size > 12*1000 {
		t.Errorf("a log of 1,000 permits takes %d bytes", size)
	}
}
