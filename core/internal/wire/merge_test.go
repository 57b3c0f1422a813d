package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// mergeables returns commands for one key that can be merged, of a script that adds up
// costs.
func mergeables(t *testing.T, n int, key string, common ...any) (all []*Command) {
	t.Helper()
	s := New("one.lua", "", nil).MergedBy(&Merging{
		Script: New("many.lua", "", nil), Lead: []any{"sum"}, Numbers: 2, Keys: 1, Own: 1, Told: 2, Least: -1,
	})
	for range n {
		c := new(Command)
		c.Set(t.Context(), s, append(append([]any{"evalsha", nil, Count(1), (*Word)(&key)}, common...), "1"), false, time.Time{})
		all = append(all, c)
	}
	return all
}

// TestAMergedCallLeavesOutWhatWasWithdrawn: otherwise it would take something, and no
// caller would be told.
func TestAMergedCallLeavesOutWhatWasWithdrawn(t *testing.T) {
	t.Parallel()
	all := mergeables(t, 3, "k")
	var m Merger
	one := m.Merge(t.Context(), all, 16)[0].(*merged)
	all[1].Withdraw()
	if _, err := one.text.MarshalBinary(); err != nil {
		t.Fatal(err)
	}
	calls := one.Args()[len(one.Args())-1].(*runCalls)
	if text, err := calls.MarshalBinary(); string(text) != "2" || err != nil {
		t.Errorf("a merged call: got a run of %s calls, %v, want 2", text, err)
	}
	if calls.String() != "3" { // a hook may read it while it is written
		t.Errorf("a hook's log of the merged call: got %v calls, want the 3 that there were", calls)
	}
	one.SetVal([]int64{2, 6})
	m.Deliver(t.Context(), 16)
	for i, want := range []int64{1, 0, 2} {
		if told, place := all[i].Told(); place != want || all[i].Written() != (want != 0) || (want != 0) != slices.Equal(told, []int64{2, 6}) {
			t.Errorf("call %d: got %v and the place %d, written %v; want the place %d", i, told, place, all[i].Written(), want)
		}
	}
}

// TestSizeCountsTheKey, because a batch is limited by sizes.
func TestSizeCountsTheKey(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k", 4000)
	if got := mergeables(t, 1, key)[0].Size(); got < len(key) {
		t.Errorf("Size of a command: got %d, want at least %d", got, len(key))
	}
}

// TestAKeyPrintsAsAKey in traces, which print the words of a command, in whatever way it is
// sent.
func TestAKeyPrintsAsAKey(t *testing.T) {
	t.Parallel()
	all := mergeables(t, 2, "k", "7")
	var m Merger
	for name, cmd := range map[string]redis.Cmder{"in a batch": all[0], "merged": m.Merge(t.Context(), all, 16)[0].(*merged)} {
		if words := fmt.Sprintln(cmd.Args()...); !strings.Contains(words, " 1 k ") || !strings.Contains(cmd.String(), " 1 k ") {
			t.Errorf("%s: got %q and %q, want the key k in both", name, words, cmd.String())
		}
	}
}

// TestAMergedCallHoldsNoCall: the memory of its calls is reused while a hook may still
// refer to the merged call.
func TestAMergedCallHoldsNoCall(t *testing.T) {
	t.Parallel()
	all := mergeables(t, 2, "k", "7")
	var m Merger
	one := m.Merge(t.Context(), all, 16)[0].(*merged)
	one.SetVal([]int64{2, 5})
	m.Deliver(t.Context(), 16)
	for _, c := range all {
		words := c.Args()
		*words[3].(*Word), words[4] = "other", "8"
	}
	if key := *one.Args()[3].(*Word); key != "k" || one.args[0] != "7" {
		t.Errorf("a merged call whose calls were used again: got the key %q and the arguments %v, want k and 7", key, one.args)
	}
	if r := one.runs[0]; r.first != nil || r.last != nil {
		t.Error("after Deliver: got a merged call that still refers to a call, want none")
	}
}

// TestAReplyOfAnotherShapeDecidesNothing: neither a reply that is too short, nor one with
// a nil for a call.
func TestAReplyOfAnotherShapeDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		states []int64
		want   error
	}{
		"none":                 {nil, errNotGiven},
		"too short":            {[]int64{1}, errNotGiven},
		"too long":             {[]int64{1, 1, 1}, errNotGiven},
		"below Least":          {[]int64{-2, 0}, errNotGiven},
		"more than there were": {[]int64{3, 0}, errNotGiven},
		"nothing for the run":  {[]int64{-1, 0}, ErrUnmerged},
	} {
		all := mergeables(t, 2, "k")
		var m Merger
		m.Merge(t.Context(), all, 16)[0].(*merged).SetVal(c.states)
		m.Deliver(t.Context(), 16)
		for _, one := range all {
			if told, _ := one.Told(); told != nil || !errors.Is(one.Err(), c.want) {
				t.Errorf("%s: got the answer %v and the error %v, want none and %v", name, told, one.Err(), c.want)
			}
		}
	}
}
