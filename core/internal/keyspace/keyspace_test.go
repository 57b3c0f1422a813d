package keyspace

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func space(tb testing.TB, secret []byte) *Space {
	tb.Helper()
	k, err := New("limit", "api", DefaultPrefix, secret)
	if err != nil {
		tb.Fatal(err)
	}
	return &k
}

// slotOf returns the part of a key that chooses its slot, as Redis reads it.
func slotOf(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return tag
}

// TestKeyShapes checks the shape by which operators look keys up.
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
		got := k.Key(subject, "p")
		if want == "" && !regexp.MustCompile(`^neap:limit:api:\{#[A-Za-z0-9_-]{43}\}:p$`).MatchString(got) || want != "" && got != want {
			t.Errorf("%q: got the key %q, want %q, or a hash if empty", subject, got, want)
		}
		if plain := Plain(subject); slotOf(got) != plain || len(plain) > maxReadable {
			t.Errorf("%q: got %q as a process stores it, want what stands in the key %q", subject, plain, got)
		}
	}
	secret := func(s string) string { return space(t, []byte(s)).Key("ip=192.0.2.1", "p") }
	if got := secret("0123456789abcdef"); !strings.Contains(got, "{#") || got != secret("0123456789abcdef") || got == secret("fedcba9876543210") {
		t.Errorf("with a secret: got the key %q, want a hash by that secret, the same in each space that has it", got)
	}
}

func TestFaultsNameTheFieldAndTheRemedy(t *testing.T) {
	t.Parallel()
	made := func(name, prefix string) error {
		if err := CheckPrefix(prefix); err != nil {
			return err
		}
		_, err := New("limit", name, prefix, nil)
		return err
	}
	const prefixes, names = "use up to 64 printable ASCII characters without spaces and braces", "use 1 to 64 letters, digits, dots, dashes or underscores"
	for _, c := range []struct {
		err  error
		want string
	}{
		{made("n", ""), ""},
		{made(strings.Repeat("n", 64), strings.Repeat("p", 64)), ""},
		{made("", ""), `name is "": ` + names},
		{made("a:b", ""), `name is "a:b": ` + names},
		{made("a\n", ""), `name is "a\n": ` + names},
		{made(strings.Repeat("n", 65), ""), `name is "` + strings.Repeat("n", 65) + `": ` + names},
		{made("n", "a b"), `Prefix is "a b": ` + prefixes},
		{made("n", "{a"), `Prefix is "{a": ` + prefixes},
		{made("n", "a}"), `Prefix is "a}": ` + prefixes},
		{made("n", "é"), `Prefix is "é": ` + prefixes},
		{made("n", strings.Repeat("p", 65)), `Prefix is "` + strings.Repeat("p", 65) + `": ` + prefixes},
		{CheckName("Name", "a b"), `Name is "a b": ` + names},
		{CheckSecret(nil), ""},
		{CheckSecret(make([]byte, 16)), ""},
		{CheckSecret(make([]byte, 15)), "SubjectSecret has 15 bytes: use at least 16, or nil for none"},
		{CheckSecret([]byte{}), "SubjectSecret has 0 bytes: use at least 16, or nil for none"},
	} {
		got := ""
		if c.err != nil {
			got = c.err.Error()
		}
		if got != c.want {
			t.Errorf("got the error %q, want %q", got, c.want)
		}
	}
}

// TestKeyAllocations: the key of a readable subject takes one allocation.
func TestKeyAllocations(t *testing.T) {
	k := space(t, nil)
	for _, tail := range []string{"", "window-5-1s"} {
		if n := testing.AllocsPerRun(100, func() { k.Key("ip=192.0.2.1", tail) }); n != 1 {
			t.Errorf("with the tail %q: got %v allocations, want 1", tail, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { k.Subject("ip=192.0.2.1") }); n != 0 {
		t.Errorf("the subject: got %v allocations, want 0", n)
	}
}

// TestKeysInABuilder: they are the same as those of Key, do not change, and share memory.
func TestKeysInABuilder(t *testing.T) { //nolint:paralleltest // it counts allocations
	for _, secret := range [][]byte{nil, []byte(strings.Repeat("s", 32))} {
		k := space(t, secret)
		var b strings.Builder
		var keys, want []string
		for i := range 100 {
			subject, tail := strings.Repeat("x", i), strings.Repeat("y", 7*i)
			keys, want = append(keys, k.KeyIn(&b, subject, tail)), append(want, k.Key(subject, tail))
		}
		if !slices.Equal(keys, want) {
			t.Errorf("keys in one builder: got %q, want %q", keys, want)
		}
	}
	k, b := space(t, nil), new(strings.Builder)
	if n := testing.AllocsPerRun(10, func() {
		for range 100 {
			k.KeyIn(b, "ip=192.0.2.1", "window-5-1s")
		}
	}); n > 10 {
		t.Errorf("keys in one builder: got %v allocations for 100 keys, want at most 10", n)
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
		for _, k := range []*Space{space(t, nil), space(t, []byte("0123456789abcdef"))} {
			for _, tail := range []string{"", "p", "}:p"} {
				x, y := k.Key(a, tail), k.Key(b, tail)
				if (a == b) != (x == y) {
					t.Errorf("%q and %q: got the keys %q and %q, want them alike only if the subjects are", a, b, x, y)
				}
				if (a == b) != (slotOf(x) == slotOf(y)) {
					t.Errorf("%q and %q: got the keys %q and %q, want tags alike only if the subjects are", a, b, x, y)
				}
				if len(x) > len("neap:limit:api:{}:")+64+len(tail) {
					t.Errorf("%d bytes: got a key of %d, want %d at most",
						len(a), len(x), len("neap:limit:api:{}:")+64+len(tail))
				}
			}
		}
	})
}

// TestPoliciesOfASubjectShareASlot asks the cluster itself. A policy's numbers are part
// of its key.
func TestPoliciesOfASubjectShareASlot(t *testing.T) {
	t.Parallel()
	cl := redistest.Cluster(t)
	admin := cl.Admin(t)
	for _, subject := range []string{"ip=192.0.2.1", "}{", "{}", "\x00{a}", strings.Repeat("{a}", 4000)} {
		k := space(t, nil)
		want := admin.ClusterKeySlot(t.Context(), k.Key(subject, "a")).Val()
		if got := admin.ClusterKeySlot(t.Context(), k.Key(subject, "b!window-5-1s")).Val(); got != want {
			t.Errorf("%.20q: got the slot %d, want %d", subject, got, want)
		}
	}
}
