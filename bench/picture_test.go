package main

import (
	"fmt"
	"testing"
	"unicode/utf8"

	"github.com/neap-go/neap/internal/svg/svgtest"
)

func ofClass(all []svgtest.Element, class string) []svgtest.Element {
	var some []svgtest.Element
	for _, e := range all {
		if e.Attrs["class"] == class {
			some = append(some, e)
		}
	}
	return some
}

func TestEachBarHasItsQuartiles(t *testing.T) {
	t.Parallel()
	r := flat()
	// Quartiles 0.7 and 1.5 about 1: the longest whisker, and so the scale.
	r.set(r.busiest(), "throttled", 0.5, 0.7, 1, 1.5, 9)
	all := svgtest.Elements(t, picture(r))
	bars, row := 0, -1
	for _, e := range all {
		if e.Name == "rect" {
			bars++
		}
	}
	whiskers := ofClass(all, "whisker")
	if want := 2 * len(r.contestants); bars != want || len(whiskers) != want {
		t.Fatalf("%d bars and %d whiskers, not %d", bars, len(whiskers), want)
	}
	for i, c := range r.contestants {
		if c.name == "throttled" {
			row = i
		}
	}
	var low, high, y float64
	if _, err := fmt.Sscanf(whiskers[row].Attrs["d"], "M%f %fv6m0 -3H%fm0 -3v6", &low, &y, &high); err != nil {
		t.Fatal(err)
	}
	if want := nameWidth + barWidth*0.7/1.5; low < want-0.1 || low > want+0.1 || high != nameWidth+barWidth {
		t.Errorf("the quartiles are drawn from %.1f to %.1f", low, high)
	}
}

func TestNoLineCrossesAFigure(t *testing.T) {
	t.Parallel()
	for _, fastest := range []float64{0.2, 1, 1.1, 8, 1234} {
		r := flat()
		for _, c := range r.contestants[1:] {
			r.set(r.busiest(), c.name, fastest/2)
		}
		r.set(r.busiest(), "throttled", fastest)
		r.set(r.busiest(), "httprate")
		all := svgtest.Elements(t, picture(r))
		lines, figures := ofClass(all, "line"), ofClass(all, "figure")
		if len(lines) != 1 || len(figures) != 2*len(r.contestants) {
			t.Fatalf("%d lines and %d figures", len(lines), len(figures))
		}
		at := lines[0].Number(t, "x1")
		if at > nameWidth+barWidth {
			t.Errorf("fastest %v: the line is at %.1f, behind the bars", fastest, at)
		}
		for _, f := range figures {
			end := f.Number(t, "x")
			begin := end - 7*float64(utf8.RuneCountInString(f.Text))
			if f.Attrs["text-anchor"] != "end" || begin < at+2 && at < end+2 {
				t.Errorf("fastest %v: %q from %.1f to %.1f, the line at %.1f", fastest, f.Text, begin, end, at)
			}
		}
	}
}
