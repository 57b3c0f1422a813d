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
			t.Errorf("%d is %d, want %d", status, got, want)
		}
		if keeps(status) != (want == doneStored) {
			t.Errorf("%d is kept: %v", status, keeps(status))
		}
		if status < 200 {
			want = doneStored
		}
		if got := concludes(&Reply{Status: status, Partial: true}); got != want {
			t.Errorf("%d in part is %d, want %d", status, got, want)
		}
	}
	if got := concludes(nil); got != doneUnknown {
		t.Errorf("a panic is %d", got)
	}
	var zero conclusion
	if zero != doneUnknown {
		t.Error("the zero conclusion says what was done")
	}
}
