package script

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// mergeables are commands for one key, which can be merged, of a script that adds up costs.
func mergeables(t *testing.T, n int, key string) (all []Command) {
	t.Helper()
	s := New("one.lua", "").MergedBy(&Merging{
		Script: New("many.lua", ""), Kind: "sum",
		Next: func(_ []int64, state, cost int64) int64 { return state + cost },
	})
	for range n {
		c := new(command)
		c.text = text{of: c, script: s}
		c.Cmd = *redis.NewCmd(t.Context(), "evalsha", &c.text, count(1), &key, "1")
		all = append(all, c)
	}
	return all
}

// TestAMergedCallLeavesOutWhatWasWithdrawn: it would take what no caller is told of.
func TestAMergedCallLeavesOutWhatWasWithdrawn(t *testing.T) {
	t.Parallel()
	all := mergeables(t, 3, "k")
	var m Merger
	one := m.Merge(t.Context(), all, 16)[0].(*merged)
	all[1].Withdraw()
	if _, err := one.text.MarshalBinary(); err != nil {
		t.Fatal(err)
	}
	if words := one.Args(); words[len(words)-1] != "2" {
		t.Errorf("got a run of %v calls, want 2", words[len(words)-1])
	}
	one.SetVal([]int64{5})
	m.Deliver(t.Context(), 16)
	for i, want := range []int64{6, 0, 7} {
		if c := all[i].(*command); c.number != want || c.Written() != (want != 0) {
			t.Errorf("call %d: got %d, written %v; want %d", i, c.number, c.Written(), want)
		}
	}
}

// TestSizeCountsTheKey, which a batch is bounded by.
func TestSizeCountsTheKey(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k", 4000)
	if got := mergeables(t, 1, key)[0].Size(); got < len(key) {
		t.Errorf("got a size of %d, want %d at least", got, len(key))
	}
}

// TestAMergedCallHoldsNoCall: their memory is used again, while a hook may still have the merged call.
func TestAMergedCallHoldsNoCall(t *testing.T) {
	t.Parallel()
	all := mergeables(t, 2, "k")
	var m Merger
	one := m.Merge(t.Context(), all, 16)[0].(*merged)
	one.SetVal([]int64{5})
	m.Deliver(t.Context(), 16)
	for _, c := range all {
		*c.(*command).Args()[3].(*string) = "other"
	}
	if key := *one.Args()[3].(*string); key != "k" {
		t.Errorf("got the key %q after the calls were used again, want k", key)
	}
	if r := one.runs[0]; r.first != nil || r.last != nil {
		t.Error("got a call that was answered, want none")
	}
}

// TestWhatACallerMayUseAgain is a call whose first attempt was merged. A client may hold any other.
func TestWhatACallerMayUseAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		again, merged, want bool
	}{
		"merged":              {merged: true, want: true},
		"by itself":           {},
		"merged when retried": {merged: true, again: true},
	} {
		call := &Call{runner: new(Runner), script: New("one.lua", "")}
		cmd := &call.sent.first
		if c.again {
			cmd = new(command)
		}
		cmd.number, cmd.whole = 7, c.merged
		call.answer(cmd)
		if got := call.Reset(); got != c.want || call.made() == c.want {
			t.Errorf("%s: got Reset %v and a call that is made %v, want %v and %v", name, got, call.made(), c.want, !c.want)
		}
	}
}
