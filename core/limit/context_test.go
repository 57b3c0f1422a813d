package limit_test

import (
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
)

func TestDecisionInAContext(t *testing.T) {
	t.Parallel()
	l, err := limit.NewLocal("ctx", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if d, ok := limit.FromContext(ctx); ok {
		t.Errorf("a context without a decision: got %+v, want none", d)
	}
	for left := range 5 {
		d, err := l.Take(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx = limit.NewContext(ctx, d)
		if got, ok := limit.FromContext(ctx); !ok || got.Remaining != int64(4-left) || !got.Allowed {
			t.Errorf("decision %d from the context: got %+v, %t, want it allowed with %d remaining",
				left, got, ok, 4-left)
		}
	}
	// What was found is the decision itself, which can be refunded, once.
	d, _ := limit.FromContext(ctx)
	if err := d.Refund(ctx); err != nil {
		t.Errorf("the refund of a decision from a context: got %v, want no error", err)
	}
	if d, err := l.Peek(ctx, "a"); err != nil || d.Remaining != 1 {
		t.Errorf("a peek after the refund: got %+v, %v, want 1 remaining", d, err)
	}
}
