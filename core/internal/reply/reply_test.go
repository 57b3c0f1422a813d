package reply_test

import (
	"slices"
	"testing"

	"github.com/neap-go/neap/core/internal/reply"
)

func TestLists(t *testing.T) {
	t.Parallel()
	list := func(all ...any) []any { return all }
	for _, c := range []struct {
		reply   any
		numbers []int64 // nil if it is not a list of whole numbers
		two     bool    // it is a list of two numbers that are 0 or 1
	}{
		{list(), []int64{}, false},
		{list(int64(0), int64(1)), []int64{0, 1}, true},
		{list(int64(0), int64(2)), []int64{0, 2}, false},
		{list(int64(1)), []int64{1}, false},
		{list(int64(1), int64(1), int64(1)), []int64{1, 1, 1}, false},
		{list(int64(1), "1"), nil, false},
		{list("1", int64(1)), nil, false},
		{list(nil, nil), nil, false},
		{int64(1), nil, false},
		{"1", nil, false},
		{nil, nil, false},
	} {
		numbers, ok := reply.Numbers(c.reply)
		if ok != (c.numbers != nil) || ok && !slices.Equal(numbers, c.numbers) {
			t.Errorf("Numbers of %v: got %v, %v, want %v", c.reply, numbers, ok, c.numbers)
		}
		if got := reply.List(2, reply.OneOf(0, 1))(c.reply); got != c.two {
			t.Errorf("List of %v: got %v, want %v", c.reply, got, c.two)
		}
	}
	if !reply.From(-2)(-2) || reply.From(-2)(-3) || !reply.Any(-1<<63) {
		t.Error("From or Any: got another answer than the number gives")
	}
}
