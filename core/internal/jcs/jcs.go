// Package jcs writes JSON in the one form that RFC 8785 (JSON Canonicalization Scheme)
// gives it, so that texts which differ only in spaces, in the order of members and in how
// strings and numbers are spelled become the same text.
package jcs

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/neap-go/neap/core/internal/jsonptr"
)

// maxDepth is how deep arrays and objects may be nested (RFC 8259 section 9 allows such a
// bound).
const maxDepth = 128

// These errors say why a text has no canonical form.
var (
	ErrInvalid = jsonptr.ErrInvalid
	ErrTwice   = errors.New("an object has two members of one name")
	ErrNumber  = errors.New("a number is not one of IEEE 754 double precision")
	ErrDepth   = errors.New("arrays and objects are nested too deeply")
)

// Canonical returns the canonical form of a text. The form is at most six times as long.
//
// The text must be I-JSON (RFC 7493): valid UTF-8 without half a surrogate pair, no name
// twice in one object, and no number beyond the magnitude or the precision of a double.
// Names that differ only in case are different names.
func Canonical(text []byte) ([]byte, error) {
	if !jsonptr.Valid(text) {
		return nil, ErrInvalid
	}
	w := writer{rest: text, out: make([]byte, 0, len(text))}
	if err := w.value(0); err != nil {
		return nil, err
	}
	return w.out, nil
}

// writer reads valid JSON and writes its canonical form.
type writer struct {
	rest, out []byte
	members   []member // of the objects that are not finished, the innermost last
	spare     []byte
}

// member is a member of an object. It is written at out[from:to], without a comma.
type member struct {
	name     string
	from, to int
}

// next skips spaces and returns the next byte.
func (w *writer) next() byte {
	w.rest = bytes.TrimLeft(w.rest, " \t\r\n")
	return w.rest[0]
}

// take reads n bytes.
func (w *writer) take(n int) []byte {
	taken := w.rest[:n]
	w.rest = w.rest[n:]
	return taken
}

func (w *writer) value(depth int) error {
	switch first := w.next(); first {
	case '{', '[':
		if depth == maxDepth {
			return ErrDepth
		}
		if w.take(1); first == '{' {
			return w.object(depth + 1)
		}
		return w.array(depth + 1)
	case '"':
		s, err := w.text()
		w.out = appendText(w.out, s)
		return err
	case 't', 'n':
		w.out = append(w.out, w.take(len("true"))...)
		return nil
	case 'f':
		w.out = append(w.out, w.take(len("false"))...)
		return nil
	}
	end := bytes.IndexAny(w.rest, " \t\r\n,]}")
	if end < 0 {
		end = len(w.rest)
	}
	number, err := appendNumber(w.out, string(w.take(end)))
	w.out = number
	return err
}

func (w *writer) array(depth int) error {
	w.out = append(w.out, '[')
	for w.next() != ']' {
		if w.rest[0] == ',' {
			w.out = append(w.out, w.take(1)...)
		}
		if err := w.value(depth); err != nil {
			return err
		}
	}
	w.out = append(w.out, w.take(1)...)
	return nil
}

// object writes the members as they come, and then in their order.
func (w *writer) object(depth int) error {
	w.out = append(w.out, '{')
	begin, first := len(w.out), len(w.members)
	for w.next() != '}' {
		if w.rest[0] == ',' {
			w.take(1)
			w.next()
		}
		name, err := w.text()
		if err != nil {
			return err
		}
		from := len(w.out)
		w.out = appendText(w.out, name)
		w.next()
		w.out = append(w.out, w.take(1)...) // the colon
		if err := w.value(depth); err != nil {
			return err
		}
		w.members = append(w.members, member{name, from, len(w.out)})
	}
	w.take(1)
	all := w.members[first:]
	slices.SortFunc(all, func(a, b member) int { return compare(a.name, b.name) })
	w.spare = w.spare[:0]
	for i, m := range all {
		if i > 0 {
			if all[i-1].name == m.name {
				return ErrTwice
			}
			w.spare = append(w.spare, ',')
		}
		w.spare = append(w.spare, w.out[m.from:m.to]...)
	}
	w.members = w.members[:first]
	w.out = append(append(w.out[:begin], w.spare...), '}')
	return nil
}

// text reads a string.
func (w *writer) text() (string, error) {
	end := 1
	for ; w.rest[end] != '"'; end++ {
		if w.rest[end] == '\\' {
			end++
		}
	}
	return jsonptr.Unquote(w.take(end + 1))
}

// appendText writes a string (RFC 8785 section 3.2.2.2).
func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	for _, c := range []byte(s) {
		switch short := strings.IndexByte("\b\t\n\f\r\"\\", c); {
		case short >= 0:
			out = append(out, '\\', `btnfr"\`[short])
		case c < ' ':
			const hex = "0123456789abcdef"
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// compare orders names by their code units in UTF-16 (RFC 8785 section 3.2.3). UTF-8 orders them
// the same, except that characters of two code units come before those from U+E000 to U+FFFF.
func compare(a, b string) int {
	for a != "" && b != "" {
		x, xs := utf8.DecodeRuneInString(a)
		y, ys := utf8.DecodeRuneInString(b)
		if x != y {
			if (xs == utf8.UTFMax) != (ys == utf8.UTFMax) {
				x, y = unit(x), unit(y)
			}
			return cmp.Compare(x, y)
		}
		a, b = a[xs:], b[ys:]
	}
	return cmp.Compare(len(a), len(b))
}

// unit returns the first code unit of a character.
func unit(r rune) rune {
	if first, _ := utf16.EncodeRune(r); first != utf8.RuneError {
		return first
	}
	return r
}
