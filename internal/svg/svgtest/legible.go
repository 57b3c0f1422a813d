package svgtest

import (
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/svg"
)

// Legible fails the test unless a drawing can be read: no text is cut off or overlaps another, in any likely font;
// each is large enough at 700 pixels; and there is a dark form, and words for a reader who cannot see it.
func Legible(t testing.TB, name, picture string) {
	t.Helper()
	type placed struct {
		text string
		box  svg.Box
	}
	var texts []placed
	said := map[string]string{}
	var page svg.Box
	for _, e := range Elements(t, picture) {
		switch e.Name {
		case "svg":
			page = svg.Box{Left: 6, Top: 6, Right: e.Number(t, "width") - 6, Bottom: e.Number(t, "height") - 6}
		case "text":
			box := svg.TextBox(e.Number(t, "x"), e.Number(t, "y"), e.Attrs["class"], e.Text)
			texts = append(texts, placed{e.Text, box})
		default:
			said[e.Name] = e.Text
		}
	}
	for i, a := range texts {
		if !a.box.Within(page) {
			t.Errorf("%s: %q is cut off: %v of %v", name, a.text, a.box, page)
		}
		for _, b := range texts[i+1:] {
			if a.box.Meets(b.box) {
				t.Errorf("%s: %q overlaps %q", name, a.text, b.text)
			}
		}
	}
	for size := range strings.SplitSeq(said["style"], "font-size:") {
		if digits, _, ok := strings.Cut(size, "px"); ok && len(digits) == 2 && digits < "13" {
			t.Errorf("%s: a text of %s px, want 13 at least", name, digits)
		}
	}
	if page.Right > 760 || len(said["title"]) < 10 || len(said["desc"]) < 100 || !strings.Contains(said["style"], "prefers-color-scheme:dark") {
		t.Errorf("%s is %.0f wide, is called %q and described as %q, want a title, a description, a dark form and 760 at most",
			name, page.Right, said["title"], said["desc"])
	}
}
