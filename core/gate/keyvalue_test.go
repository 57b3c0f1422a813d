package gate_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/neap-go/neap/core/gate"
)

type (
	userKey   int
	tenantKey int
	structKey struct{}
	namedKey  struct{ name string }
	userID    string
	account   uint32
	badge     struct{ n int }
)

func (b *badge) String() string { return "badge" }

func TestByValue(t *testing.T) {
	t.Parallel()
	pointer := &namedKey{"user"}
	for _, c := range []struct {
		name       string
		key, value any
		want       outcome
	}{
		{"string", "user", "bob", "user=bob"},
		{"named string", "user", userID("bob"), "user=bob"},
		{"int", "user", 42, "user=42"},
		{"negative", "user", int64(-42), "user=-42"},
		{"zero", "user", 0, "user=0"},
		{"named uint", "user", account(42), "user=42"},
		{"largest", "user", ^uint64(0), "user=18446744073709551615"},
		{"Stringer", "user", netip.MustParseAddr("::1"), "user=::1"},
		{"pointer Stringer", "user", &badge{}, "user=badge"},
		{"typed key", userKey(0), "bob", "user=bob"},
		{"another of its values", userKey(1), "bob", "user=bob"},
		{"another type", tenantKey(0), "bob", "user=bob"},
		{"empty struct key", structKey{}, "bob", "user=bob"},
		{"pointer key", pointer, "bob", "user=bob"},
		{"nothing", "user", nil, absent},
		{"empty", "user", "", absent},
		{"empty named", "user", userID(""), absent},
		{"nil Stringer", "user", (*badge)(nil), absent},
		{"nil Stringer that is a slice", "user", net.IP(nil), absent},
		{"bool", "user", true, faulty},
		{"float", "user", 1.5, faulty},
		{"struct", "user", badge{}, faulty},
		{"bytes", "user", []byte("bob"), faulty},
	} {
		key := gate.ByValue("user", c.key)
		values := map[any]any{"user": "eve", userKey(0): "eve", userKey(1): "eve", tenantKey(0): "eve", structKey{}: "eve", pointer: "eve"}
		values[c.key] = c.value
		if got := ask(t, key, &request{values: values}); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	ctx := context.WithValue(context.Background(), structKey{}, "bob")
	if got := ask(t, gate.ByValue("user", structKey{}), &request{ctx: ctx}); got != "user=bob" {
		t.Errorf("from the context: got %q, want \"user=bob\"", got)
	}
}
