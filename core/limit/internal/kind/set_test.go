package kind_test

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// TestSignaturesTellSetsApart that differ in anything by which they would decide, or count, in another
// way.
func TestSignaturesTellSetsApart(t *testing.T) {
	t.Parallel()
	window, err := kind.NewWindow(10, time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	rule := func(change func(r *kind.Rule)) *kind.Rule {
		r := kind.NewRule("n", "tail", window)
		change(r)
		return r
	}
	plain := rule(func(*kind.Rule) {})
	seen := map[string]string{}
	for name, rules := range map[string][]*kind.Rule{
		"plain": {plain}, "two": {plain, plain},
		"another tail": {rule(func(r *kind.Rule) { r.Tail = "liat" })},
		"shadow":       {rule(func(r *kind.Rule) { r.Shadow = true })},
		"once":         {rule(func(r *kind.Rule) { r.Once = true })},
		"kept":         {rule(func(r *kind.Rule) { r.Kept = "window-10-1h" })},
		"a ban":        {rule(func(r *kind.Rule) { r.Ban = &kind.Ban{Tail: "tail!ban-1"} })},
		"another ban":  {rule(func(r *kind.Rule) { r.Ban = &kind.Ban{Tail: "tail!ban-2"} })},
		"one space":    {rule(func(r *kind.Rule) { r.Tail = "tail:false:false: 4:tail" })},
	} {
		signature := kind.NewSet(rules, false).Signature
		if other, is := seen[signature]; is {
			t.Errorf("%s: got the signature %q, which is that of %s", name, signature, other)
		}
		seen[signature] = name
	}
}
