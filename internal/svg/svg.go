// Package svg makes drawings that can be read in light and in dark, at 700
// pixels, and by a screen reader. A drawing depends on what is drawn alone.
package svg

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The classes of text, and their sizes in pixels.
const (
	Title = "title"
	Name  = "name"
	Plain = "plain"
	Small = "small"
)

var sizes = map[string]float64{Title: 18, Name: 15, Plain: 14, Small: 13}

// The colours stand twice, since not all that draws SVG knows variables. The
// ground is part of the drawing: a page may be dark where the reader's system
// is light.
const style = `<style>
text{font-family:system-ui,-apple-system,"Segoe UI",sans-serif;font-size:14px;fill:#57606a}
.title{font-size:18px;font-weight:600;fill:#1f2328}.name{font-size:15px;font-weight:600;fill:#1f2328}.small{font-size:13px}
.middle{text-anchor:middle}.end{text-anchor:end}
.ground{fill:#fff;stroke:#d1d9e0}
.yes{fill:#0d9488}.no{stroke:#cf222e;stroke-width:2;fill:none}.area{fill:#0d9488;fill-opacity:.2;stroke:#0d9488;stroke-width:1.5}
.bar{fill:#0d9488;fill-opacity:.2;stroke:#0d9488}
.axis{stroke:#8c959f;fill:none}.grid{stroke:#d1d9e0;fill:none}.edge{stroke:#9a6700;stroke-dasharray:4 3;fill:none}
.state{fill:#f6f8fa;stroke:#59636e}.group{fill:none;stroke:#8c959f;stroke-dasharray:6 4}
.arrow{stroke:#0a7a70;stroke-width:1.5;fill:none}.head{fill:#0a7a70}
@media(prefers-color-scheme:dark){
text{fill:#9da7b3}.title,.name{fill:#f0f6fc}
.ground{fill:#0d1117;stroke:#3d444d}
.yes{fill:#2dd4bf}.no{stroke:#ff7b72}.area{fill:#2dd4bf;stroke:#2dd4bf}.bar{fill:#2dd4bf;stroke:#2dd4bf}
.axis{stroke:#6e7681}.grid{stroke:#3d444d}.edge{stroke:#d29922}
.state{fill:#161b22;stroke:#9198a1}.group{stroke:#6e7681}
.arrow{stroke:#2dd4bf}.head{fill:#2dd4bf}
}
</style>
`

// Point is a place in a drawing, in pixels from its upper left corner.
type Point struct{ X, Y float64 }

// At is the point with these coordinates.
func At(x, y float64) Point { return Point{x, y} }

// String writes a point as the data of a path has it.
func (p Point) String() string { return Number(p.X) + " " + Number(p.Y) }

// Box is a rectangle.
type Box struct{ Left, Top, Right, Bottom float64 }

// Meets says whether two boxes have a point in common.
func (b Box) Meets(c Box) bool {
	return b.Left < c.Right && c.Left < b.Right && b.Top < c.Bottom && c.Top < b.Bottom
}

// Within says whether all of b is in c.
func (b Box) Within(c Box) bool {
	return b.Left >= c.Left && b.Top >= c.Top && b.Right <= c.Right && b.Bottom <= c.Bottom
}

// TextBox is the room that a text takes at most, in any font that is likely to
// be met: x and y are what [Drawing.Text] is given, the classes too.
func TextBox(x, y float64, classes, text string) Box {
	size, wide, left := sizes[Plain], 0.6, 0.0
	for class := range strings.FieldsSeq(classes) {
		switch class {
		case "middle":
			left = 0.5
		case "end":
			left = 1
		case Title, Name:
			wide = 0.64
			fallthrough
		default:
			size = sizes[class]
		}
	}
	width := wide * size * float64(utf8.RuneCountInString(text))
	return Box{x - left*width, y - size*0.8, x + (1-left)*width, y + size*0.25}
}

// Drawing is an SVG in the making.
type Drawing struct {
	width, height float64
	title, desc   string
	body          strings.Builder
}

// New begins a drawing. The title names it and desc says what there is to see,
// to a reader who cannot see it.
func New(width, height float64, title, desc string) *Drawing {
	return &Drawing{width: width, height: height, title: title, desc: desc}
}

// Text writes from x on, on the line y. Its classes are a size, and "middle" or
// "end" where x is not the text's beginning.
func (d *Drawing) Text(x, y float64, classes, text string) {
	d.addf(`<text class="%s" x="%s" y="%s">%s</text>`, classes, Number(x), Number(y), Escape(text))
}

// Rect draws a box with round corners.
func (d *Drawing) Rect(class string, b Box, radius float64) {
	d.addf(`<rect class="%s" x="%s" y="%s" width="%s" height="%s" rx="%s"/>`,
		class, Number(b.Left), Number(b.Top), Number(b.Right-b.Left), Number(b.Bottom-b.Top), Number(radius))
}

// Path draws along the data of SVG's path element.
func (d *Drawing) Path(class, data string) { d.addf(`<path class="%s" d="%s"/>`, class, data) }

// Line draws a straight line.
func (d *Drawing) Line(class string, from, to Point) {
	d.Path(class, fmt.Sprintf("M%sL%s", from, to))
}

func (d *Drawing) addf(format string, args ...any) { fmt.Fprintf(&d.body, format+"\n", args...) }

// String is the file.
func (d *Drawing) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]s %[2]s" width="%[1]s" height="%[2]s" role="img" aria-labelledby="title desc">`+"\n",
		Number(d.width), Number(d.height))
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n%s", Escape(d.title), Escape(d.desc), style)
	ground := Drawing{}
	ground.Rect("ground", Box{0.5, 0.5, d.width - 0.5, d.height - 0.5}, 6)
	b.WriteString(ground.body.String() + d.body.String() + "</svg>\n")
	return b.String()
}

// Number writes a length to a tenth of a pixel. What is half-way between two is
// rounded up however a machine has rounded before.
func Number(n float64) string {
	tenths := int64(math.Floor(n*10 + 0.5 + 1e-6))
	return strconv.FormatFloat(float64(tenths)/10, 'f', -1, 64)
}

// Escape makes a text fit to stand between tags.
func Escape(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		return ""
	}
	return b.String()
}
