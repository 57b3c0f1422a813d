package call

import (
	"context"
	"testing"
	"time"

	"github.com/neap-go/neap/core/internal/wire"
)

// TestWhatACallerMayUseAgain: only a call whose first attempt was merged. A client may
// refer to any other.
func TestWhatACallerMayUseAgain(t *testing.T) {
	t.Parallel()
	s := wire.New("one.lua", "return 7", nil).MergedBy(&wire.Merging{
		Script: wire.New("many.lua", "", nil), Keys: 1, Own: 1, Told: 1,
	})
	client, err := NewClient(neverAnswers{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		again, merged, want bool
	}{
		"merged":              {merged: true, want: true},
		"by itself":           {},
		"merged when retried": {merged: true, again: true},
	} {
		again := c.again
		by := transport(func(ctx context.Context, cmd *wire.Command) error {
			switch {
			case again:
				again = false
				cmd.SetErr(loadingError{})
			case c.merged:
				twin := new(wire.Command)
				twin.Set(ctx, s, []any{"evalsha", nil, wire.Count(1), "k", "1"}, false, time.Time{})
				var m wire.Merger
				m.Merge(ctx, []*wire.Command{cmd, twin}, 1)[0].(interface{ SetVal(states []int64) }).SetVal([]int64{2})
				m.Deliver(ctx, 1)
			default:
				cmd.SetVal(int64(7))
			}
			return nil
		})
		own := new(Call)
		if err := own.Set(s, []string{"k"}, []any{"1"}); err != nil {
			t.Fatal(err)
		}
		if err := client.Do(t.Context(), own, time.Minute, by); err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
		if told, _ := own.Told(); (told != nil) != c.merged || told == nil && own.Reply() != int64(7) {
			t.Errorf("%s: got the reply %v, told %v, want 7 or what was told", name, own.Reply(), told)
		}
		if got := own.Reset(); got != c.want || (own.Script() == nil) != c.want {
			t.Errorf("%s: got Reset %v, and a call of a script %v; want %v and %v", name, got, own.Script() != nil, c.want, !c.want)
		}
	}
}
