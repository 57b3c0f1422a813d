package kind

import (
	"testing"
	"time"
)

// TestALogReleasesItsMemory when most of its permits have left.
func TestALogReleasesItsMemory(t *testing.T) {
	t.Parallel()
	l, err := NewLog(1000, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var c Cell
	l.Advance(&c, 0)
	l.Add(&c, 999)
	l.Advance(&c, 500_000)
	l.Add(&c, 1)
	if l.Advance(&c, 1_200_000); len(c.log) != 1 || cap(c.log) > 10 {
		t.Errorf("after 999 of 1000 have left: got %d entries in room for %d, want 1 in room for at most 10", len(c.log), cap(c.log))
	}
}
