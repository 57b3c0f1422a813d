package limit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// mine is a policy of a caller's own type.
type mine struct{ limit.Policy }

// TestTermsHoldTogether, in whichever order they are said, and if a caller has put the policy into a
// type of its own in between.
func TestTermsHoldTogether(t *testing.T) {
	t.Parallel()
	say := map[string]func(limit.Policy) limit.Policy{
		"Shadow":       limit.Shadow,
		"PerRequest":   limit.PerRequest,
		"KeepOnChange": limit.KeepOnChange,
		"WithBan": func(p limit.Policy) limit.Policy {
			return limit.WithBan(p, limit.Ban{After: 1, Within: time.Hour, For: 2 * time.Hour})
		},
		"WithLease": func(p limit.Policy) limit.Policy { return limit.WithLease(p, time.Minute) },
	}
	holds := map[string]func(t *testing.T, l *limit.Limiter) bool{
		"Shadow": func(t *testing.T, l *limit.Limiter) bool {
			t.Helper()
			d := must(l.TakeN(t.Context(), "s", 1))(t)
			return first(d).Shadow
		},
		"PerRequest": func(t *testing.T, l *limit.Limiter) bool {
			t.Helper()
			d := must(l.TakeN(t.Context(), "s", 5))(t)
			return first(d).Remaining == 9
		},
		"KeepOnChange": func(t *testing.T, l *limit.Limiter) bool {
			t.Helper()
			must(l.TakeN(t.Context(), "s", 1))(t)
			larger := must(l.With(limit.KeepOnChange(limit.FixedWindow{Name: "n", Limit: 20, Window: time.Hour})))(t)
			return must(larger.Peek(t.Context(), "s"))(t).Remaining == 19
		},
		"WithBan": func(t *testing.T, l *limit.Limiter) bool {
			t.Helper()
			return l.Ban(t.Context(), "s", time.Hour) == nil
		},
	}
	window := limit.FixedWindow{Name: "n", Limit: 10, Window: time.Hour}
	for one, sayOne := range say {
		for other, sayOther := range say {
			for how, p := range map[string]limit.Policy{"one after the other": sayOther(sayOne(window)), "with a type between": sayOther(mine{sayOne(window)})} {
				_, err := limit.NewLocal("n", []limit.Policy{p}, nil)
				refused := one+other == "PerRequestWithLease" || one+other == "WithLeasePerRequest"
				if (err != nil) != refused {
					t.Errorf("%s of %s, %s: got the error %v, want one: %t", other, one, how, err, refused)
					continue
				}
				for _, term := range []string{one, other} {
					if holds[term] != nil && !refused && !holds[term](t, must(limit.NewLocal("n", []limit.Policy{p}, nil))(t)) {
						t.Errorf("%s of %s, %s: got no %s, want both to hold", other, one, how, term)
					}
				}
			}
		}
	}
}

// TestAPolicyThatIsNoneInATypeOfItsOwn is refused as one that is nil.
func TestAPolicyThatIsNoneInATypeOfItsOwn(t *testing.T) {
	t.Parallel()
	var none *limit.FixedWindow
	for _, p := range []limit.Policy{mine{}, &mine{}, mine{none}, mine{mine{}}, limit.Shadow(mine{}), (*mine)(nil)} {
		if _, err := limit.NewLocal("n", []limit.Policy{p}, nil); err == nil || !strings.Contains(err.Error(), "policies[0] is nil") {
			t.Errorf("%#v: got %v, want it refused as nil", p, err)
		}
	}
	if _, err := limit.NewLocal("n", []limit.Policy{mine{limit.FixedWindow{Limit: 1, Window: time.Hour}}}, nil); err != nil {
		t.Errorf("a policy in a type of its own: got %v, want it accepted", err)
	}
}
