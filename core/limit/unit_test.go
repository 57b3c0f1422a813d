package limit_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
)

// withUnit are policies of each kind with a unit.
func withUnit(unit string) (all []limit.Policy) {
	for _, p := range append(slices.Clip(limit.OneOfEach), limit.Shadow(limit.FixedWindow{Name: "shadow", Window: time.Hour})) {
		all = append(all, limit.Set(limit.Set(p, int64(3), "Burst", "Limit"), unit, "Unit"))
	}
	return all
}

// TestUnitIsAWordForClients: every state has the unit and no key does, so a change of the
// unit keeps what was counted.
func TestUnitIsAWordForClients(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	taken := 0
	for unit, want := range map[string]string{"": "", limit.UnitRequests: "", limit.UnitContentBytes: limit.UnitContentBytes, "x": "x"} {
		l := must(limit.New(rdb, "unit", withUnit(unit), closed(patience)))(t)
		d, err := l.Take(t.Context(), "s")
		taken++
		if err != nil || d.Allowed != (taken <= 3) {
			t.Errorf("take %d, with the unit %q: got %+v, %v, want allowed %t", taken, unit, d, err, taken <= 3)
		}
		states := 0
		for s := range d.States() {
			states++
			if s.Unit != want {
				t.Errorf("policy %s: got the unit %q, want %q", s.Policy, s.Unit, want)
			}
		}
		if want := len(withUnit(unit)); states != want {
			t.Errorf("the states of a decision: got %d, want %d", states, want)
		}
	}
}

func TestUnitIsChecked(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{" ", "content bytes", "bytes\"", "öre", strings.Repeat("x", 65), "a\r\nb"} {
		_, err := limit.NewLocal("unit", withUnit(unit), nil)
		if err == nil || strings.Count(err.Error(), "Unit is ") != len(withUnit(unit)) || !strings.Contains(err.Error(), "policies[4]") {
			t.Errorf("the unit %.20q: got %v, want a fault of each policy", unit, err)
		}
	}
	mixed := []limit.Policy{
		limit.FixedWindow{Name: "a", Limit: 3, Window: time.Hour, Unit: limit.UnitRequests},
		limit.FixedWindow{Name: "b", Limit: 3, Window: time.Minute},
		limit.FixedWindow{Name: "c", Limit: 3, Window: time.Second, Unit: limit.UnitContentBytes},
	}
	if _, err := limit.NewLocal("unit", mixed[:2], nil); err != nil {
		t.Errorf("the default unit and its name: got %v, want no error", err)
	}
	if _, err := limit.NewLocal("unit", mixed, nil); err == nil || !strings.Contains(err.Error(), "policies[2] (limit.FixedWindow): Unit is \"content-bytes\"") {
		t.Errorf("two units: got %v, want a fault of policies[2]", err)
	}
}
