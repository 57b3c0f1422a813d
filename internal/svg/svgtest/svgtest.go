// Package svgtest takes drawings apart for the tests of what draws them.
package svgtest

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// Element is one of a drawing, with the text in it.
type Element struct {
	Name, Text string
	Attrs      map[string]string
}

// Number is an attribute's.
func (e Element) Number(t testing.TB, attr string) float64 {
	t.Helper()
	var n float64
	if _, err := fmt.Sscan(e.Attrs[attr], &n); err != nil {
		t.Fatalf("%s of %v: got %v, want a number", attr, e, err)
	}
	return n
}

// Elements are a drawing's, in order. It fails the test where the drawing is
// not well-formed.
func Elements(t testing.TB, drawing string) []Element {
	t.Helper()
	var all []Element
	decoder := xml.NewDecoder(strings.NewReader(drawing))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			one := Element{Name: token.Name.Local, Attrs: map[string]string{}}
			for _, a := range token.Attr {
				one.Attrs[a.Name.Local] = a.Value
			}
			all = append(all, one)
		case xml.CharData:
			if len(all) > 0 {
				all[len(all)-1].Text += strings.TrimSpace(string(token))
			}
		}
	}
}
