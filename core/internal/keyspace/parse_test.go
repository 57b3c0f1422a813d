package keyspace

import (
	"strings"
	"testing"
)

// TestParseReadsWhatKeyMakes: Parse returns every part of a key.
func TestParseReadsWhatKeyMakes(t *testing.T) {
	t.Parallel()
	for _, secret := range [][]byte{nil, []byte("0123456789abcdef")} {
		for _, prefix := range []string{"neap", "a:b", "[*]", ":"} {
			for _, subject := range []string{"ip=192.0.2.1", "ip=2001:db8::/64", "a b", "}", "{x}", "\n", strings.Repeat("a", 65), "#"} {
				for _, tail := range []string{"", "p", "a!b", "1700000000000", "x:y"} {
					k, err := New("limit", "api.v-1_2", prefix, secret)
					if err != nil {
						t.Fatal(err)
					}
					key := k.Key(subject, tail)
					got, ok := Parse(prefix, key)
					if want := (Parts{"limit", "api.v-1_2", k.Subject(subject), tail}); !ok || got != want {
						t.Errorf("%q: got %+v, %v, want %+v", key, got, ok, want)
					}
				}
			}
		}
	}
}

func TestParseRefusesWhatIsNoKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"", "neap", "neap:", "neap:limit", "neap:limit:api", "neap:limit:api:", "neap:limit:api:{", "neap:limit:api:{a", "neap:limit:api:a",
		"neap:limit:api:{}", "neap:limit:api:{}:p", "neap:limit:api:{a}p", "neap:limit:api:{a}:", "neap:limit:{a}:p", "neap::api:{a}",
		"neap:limit:a b:{a}", "neap:limit:a:b:{a}", "neap:limit:api:{a b}", "neap:limit:api:{#short}", "neap:limit:api:{a\x1b[2J}", "other:limit:api:{a}",
		"neap2:limit:api:{a}",
	} {
		if got, ok := Parse("neap", key); ok {
			t.Errorf("%q: got %+v, want no key", key, got)
		}
	}
}

// TestStoredSubjects: a space that accepts hashes finds the key of a hash. It hashes
// everything else as before.
func TestStoredSubjects(t *testing.T) {
	t.Parallel()
	for _, secret := range [][]byte{nil, []byte("0123456789abcdef")} {
		k := space(t, secret)
		by := k.Stored()
		for _, subject := range []string{"ip=192.0.2.1", "a b", "#", "#short", "#" + strings.Repeat("a", 44)} {
			if got, want := by.Key(subject, "p"), k.Key(subject, "p"); got != want {
				t.Errorf("%q: got the key %q, want %q", subject, got, want)
			}
			stored := k.Subject(subject)
			if got, want := by.Subject(stored), stored; strings.HasPrefix(stored, "#") && got != want {
				t.Errorf("%q: got the subject %q, want it as it is stored", stored, got)
			}
		}
		if hash := k.Subject("a b"); k.Subject(hash) == hash {
			t.Errorf("%q: got a hash used as it is in a space for requests, want it hashed", hash)
		}
	}
}
