package outgoing

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// TestWhatIsRememberedIsBounded: a flood of subjects that refuse takes no more room, and those
// are remembered that refused last.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	of, began := newBySubject[refusal](), time.Now()
	for i := range mostKnown + 100 {
		next(of, fmt.Sprint(i), began, time.Hour)
	}
	if n := of.known.Load(); n != mostKnown {
		t.Errorf("got %d subjects, want %d", n, mostKnown)
	}
	if d := next(of, fmt.Sprint(mostKnown+99), time.Now(), time.Hour); d != 2*time.Second {
		t.Errorf("the last one again: got %v, want 2 s", d)
	}
	if d := next(of, "0", time.Now(), time.Hour); d != time.Second {
		t.Errorf("one that was forgotten: got %v, want 1 s", d)
	}
	for i := range mostKnown + 100 {
		accepted(of, fmt.Sprint(i), time.Now())
	}
	if n := of.known.Load(); n != 0 {
		t.Errorf("when none refuses: got %d subjects, want none", n)
	}
}

// TestSubjectsKeepNoLargeStrings in memory: a host is a part of its URL, which a partner may
// choose.
func TestSubjectsKeepNoLargeStrings(t *testing.T) {
	t.Parallel()
	of, large := newBySubject[refusal](), strings.Repeat("x", 100_000)
	next(of, large, time.Now(), time.Hour)
	next(of, large[:9], time.Now(), time.Hour)
	for _, kept := range of.all.Keys() {
		if len(kept) > 64 || unsafe.StringData(kept) == unsafe.StringData(large) {
			t.Errorf("got a subject of %d bytes, or a part of another string, want a copy of at most 64 bytes", len(kept))
		}
	}
	if _, known := of.find(large); !known {
		t.Error("the long subject is not found")
	}
}

// TestCallsThatBeganBeforeARefusal neither lengthen the hold nor end the doubling.
func TestCallsThatBeganBeforeARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of, early := newBySubject[refusal](), time.Now()
		time.Sleep(time.Second)
		var got []time.Duration
		for range 3 { // they were on their way together
			got = append(got, next(of, "s", early, time.Hour))
		}
		accepted(of, "s", early) // and a late success
		time.Sleep(time.Second)
		got = append(got, next(of, "s", time.Now(), time.Hour))
		time.Sleep(time.Second)
		accepted(of, "s", time.Now())
		got = append(got, next(of, "s", time.Now(), time.Hour))
		if want := "[1s 0s 0s 2s 1s]"; fmt.Sprint(got) != want {
			t.Errorf("got the holds %v, want %s", got, want)
		}
	})
}
