package isnil

import "testing"

func TestValue(t *testing.T) {
	t.Parallel()
	for _, v := range []any{nil, (*int)(nil), (func())(nil), map[int]int(nil), []int(nil), (chan int)(nil), error(nil)} {
		if !Value(v) {
			t.Errorf("a nil %T: got false, want true", v)
		}
	}
	for _, v := range []any{new(int), func() {}, map[int]int{}, []int{}, make(chan int), 0, "", struct{}{}} {
		if Value(v) {
			t.Errorf("a %T: got true, want false", v)
		}
	}
}
