package svg_test

import (
	"testing"

	"github.com/neap-go/neap/internal/svg"
	"github.com/neap-go/neap/internal/svg/svgtest"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[float64]string{0: "0", -0.04: "0", 2: "2", 2.04: "2", 2.05: "2.1", 2.05 - 1e-12: "2.1", -1.3: "-1.3", 720: "720"} {
		if got := svg.Number(n); got != want {
			t.Errorf("%v is written %s, want %s", n, got, want)
		}
	}
}

// TestWhatIsSaidStandsAsText, whatever characters it has.
func TestWhatIsSaidStandsAsText(t *testing.T) {
	t.Parallel()
	const odd = `a < b && "c" > 'd'`
	d := svg.New(100, 50, odd, odd)
	d.Text(1, 2, svg.Name+" end", odd)
	n := 0
	for _, e := range svgtest.Elements(t, d.String()) {
		if e.Text == odd {
			n++
		}
	}
	if n != 3 {
		t.Errorf("it stands there %d times, want 3:\n%s", n, d)
	}
}

func TestTextBox(t *testing.T) {
	t.Parallel()
	begin, middle, end := svg.TextBox(100, 20, svg.Plain, "text"), svg.TextBox(100, 20, svg.Plain+" middle", "text"), svg.TextBox(100, 20, svg.Plain+" end", "text")
	if begin.Left != 100 || end.Right != 100 || middle.Left+middle.Right != 200 || begin.Meets(end) || !begin.Meets(middle) {
		t.Errorf("got the boxes %v, %v and %v, want one from 100 on, one about it, and one up to it",
			begin, middle, end)
	}
	if large := svg.TextBox(100, 20, svg.Title, "text"); large.Right <= begin.Right || !begin.Within(large) {
		t.Errorf("the box of a title is %v, want it around %v", large, begin)
	}
}
