package store_test

import (
	"strings"
	"testing"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/storetest"
)

func TestAKeySaysWhatItWasMadeOf(t *testing.T) {
	t.Parallel()
	secret := []byte("a secret of 16 bytes or more")
	for name, st := range map[string]*store.Store{
		"a prefix":      storetest.At(t, unused(t), "shop"),
		"a secret":      storetest.Open(t, unused(t), store.Options{SubjectSecret: secret}),
		"a zero store":  {},
		"without store": nil,
	} {
		key, err := st.Key("limit", "api", "user-17")
		if err != nil {
			t.Fatalf("%s: got %v, want no error", name, err)
		}
		parts, ok := st.ParseKey(key)
		if hashed := strings.HasPrefix(parts.Subject, "#"); !ok || parts.Kind != "limit" || parts.Name != "api" || parts.Tail != "" ||
			hashed != (name == "a secret") || !hashed && parts.Subject != "user-17" {
			t.Errorf("%s: the key %q: got %+v, %v, want what it was made of", name, key, parts, ok)
		}
		if parts, ok := st.ParseKey(key + ":window-5-1h"); !ok || parts.Tail != "window-5-1h" {
			t.Errorf("%s: a key with a policy: got %+v, %v, want the policy", name, parts, ok)
		}
		if _, ok := st.ParseKey("somebody:else"); ok {
			t.Errorf("%s: a key of somebody else: got its parts, want none", name)
		}
		_, err = st.Key("no kind", "no name", "s")
		if err == nil || !strings.Contains(err.Error(), "kind is") || !strings.Contains(err.Error(), "name is") {
			t.Errorf("%s: a kind and a name with spaces: got %v, want an error about both", name, err)
		}
	}
	st := storetest.Open(t, unused(t), store.Options{SubjectSecret: secret})
	before, err := st.Key("limit", "api", "user-17")
	clear(secret) // it was copied
	if after, again := st.Key("limit", "api", "user-17"); after != before || err != nil || again != nil {
		t.Errorf("after the caller's secret was cleared: got the key %q, %v, %v, want %q as before", after, err, again, before)
	}
}
