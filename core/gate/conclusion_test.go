package gate

import (
	"slices"
	"testing"
)

func TestConclusions(t *testing.T) {
	t.Parallel()
	for status := range 1000 {
		want := doneUnknown
		switch {
		case slices.Contains([]int{401, 403, 408, 425, 429}, status):
			want = doneNothing
		case status >= 200 && status < 500:
			want = doneStored
		}
		if got := concludes(&Reply{Status: status}); got != want {
			t.Errorf("status %d: got the conclusion %d, want %d", status, got, want)
		}
		if keeps(status) != (want == doneStored) {
			t.Errorf("status %d: got kept %t, want %t", status, keeps(status), want == doneStored)
		}
		if status < 200 {
			want = doneStored
		}
		if got := concludes(&Reply{Status: status, Partial: true}); got != want {
			t.Errorf("status %d of a partial reply: got the conclusion %d, want %d", status, got, want)
		}
	}
	if got := concludes(nil); got != doneUnknown {
		t.Errorf("a panic: got the conclusion %d, want %d", got, doneUnknown)
	}
	var zero conclusion
	if zero != doneUnknown {
		t.Errorf("the zero conclusion is %d, want %d", zero, doneUnknown)
	}
}
