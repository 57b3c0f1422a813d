// Package jsonptr finds members of JSON, and refuses a name that is ambiguous: one that
// comes twice, or in another case. The reason is that encoding/json decodes "id" and "ID"
// into the same field and keeps the last.
package jsonptr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// These errors say why there is no such member.
var (
	ErrInvalid   = errors.New("it is not valid JSON")
	ErrMissing   = errors.New("a member is missing")
	ErrAmbiguous = errors.New("a member comes twice, or in another case")
	ErrCompound  = errors.New("a member is not a string, an integer or a boolean")
	ErrFraction  = errors.New("a member is not an integer")
)

// Pointer is a JSON Pointer (RFC 6901), such as /payer/id or /items/0/sku.
type Pointer struct {
	text string
	path []string
}

// Parse reads a pointer to a member. Its error says what is wrong with it.
func Parse(pointer string) (Pointer, error) {
	if !strings.HasPrefix(pointer, "/") {
		return Pointer{}, fmt.Errorf("%q is no JSON Pointer to a member; write /account or /payer/id", pointer)
	}
	path := strings.Split(pointer[1:], "/")
	for i, token := range path {
		rest := strings.NewReplacer("~0", "", "~1", "").Replace(token)
		if strings.Contains(rest, "~") {
			return Pointer{}, fmt.Errorf("%q has a ~ that is neither ~0 nor ~1 (RFC 6901 section 3); write ~0 for the character itself", pointer)
		}
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return Pointer{pointer, path}, nil
}

// String returns the pointer as it was given to Parse.
func (p Pointer) String() string { return p.text }

// Find returns the member. Valid must have accepted the text. If the member is missing,
// the error is ErrMissing.
func (p Pointer) Find(text []byte) (json.RawMessage, error) {
	value := json.RawMessage(text)
	for _, token := range p.path {
		next, err := child(value, token)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return nil, ErrMissing
		}
		value = next
	}
	return bytes.TrimSpace(value), nil
}

// Text returns the member as text: a string that is not empty, an integer as it is
// written, or a boolean. It refuses a number with a fraction or an exponent, because such
// a number has many spellings. Null counts as missing. A string with half of a surrogate
// pair is ErrInvalid, because all such halves are read as U+FFFD.
func (p Pointer) Text(text []byte) (string, error) {
	value, err := p.Find(text)
	if err != nil {
		return "", err
	}
	switch value[0] {
	case '"':
		s, err := Unquote(value)
		if err == nil && s == "" {
			err = ErrMissing
		}
		return s, err
	case 't', 'f':
		return string(value), nil
	case 'n':
		return "", ErrMissing
	case '{', '[':
		return "", ErrCompound
	}
	if bytes.ContainsAny(value, ".eE") || string(value) == "-0" {
		return "", ErrFraction
	}
	return string(value), nil
}

// Unquote returns the text of a string in quotes, which Valid has accepted. A string with
// half of a surrogate pair is ErrInvalid.
func Unquote(quoted []byte) (s string, err error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	if err := json.Unmarshal(quoted, &s); err != nil || halfPair(quoted) {
		return "", ErrInvalid
	}
	return s, nil
}

// halfPair reports whether a string in quotes, which is valid JSON, has the escape of one
// surrogate without the other.
func halfPair(quoted []byte) bool {
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		first, length := escaped(quoted[i:])
		if second, more := escaped(quoted[i+length:]); utf16.IsSurrogate(first) {
			if utf16.DecodeRune(first, second) == utf8.RuneError {
				return true
			}
			length += more
		}
		i += length - 1
	}
	return false
}

// escaped returns the code unit of a \u escape and its length. For an escape of one
// character it returns 0 and that length.
func escaped(text []byte) (unit rune, length int) {
	if len(text) < len(`\u0000`) || text[0] != '\\' || text[1] != 'u' {
		return 0, len(`\n`)
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0, len(`\n`)
	}
	return rune(n), len(`\u0000`)
}

// Valid reports whether a text is JSON that every reader reads in the same way. It
// refuses invalid UTF-8, because encoding/json reads that as U+FFFD, and two names would
// become one.
func Valid(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }

// child finds a member of an object, or an element of an array, in valid JSON. It returns
// nil if there is none.
func child(value json.RawMessage, token string) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	open, err := dec.Token()
	if err != nil {
		return nil, ErrInvalid
	}
	switch open {
	case json.Delim('{'):
		return member(dec, token)
	case json.Delim('['):
		return element(dec, token)
	}
	return nil, nil
}

// member refuses a name that differs only in case, even if it comes once: the handler may
// decode it.
func member(dec *json.Decoder, name string) (found json.RawMessage, err error) {
	alike := 0
	var value json.RawMessage
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, ErrInvalid
		}
		if err := dec.Decode(&value); err != nil {
			return nil, ErrInvalid
		}
		if key == name {
			found = bytes.Clone(value)
		}
		if strings.EqualFold(key.(string), name) {
			alike++
		}
	}
	if alike > 1 || alike == 1 && found == nil {
		return nil, fmt.Errorf("%w: %s", ErrAmbiguous, strconv.Quote(name))
	}
	return found, nil
}

func element(dec *json.Decoder, token string) (json.RawMessage, error) {
	var value json.RawMessage
	for at := 0; dec.More(); at++ {
		if err := dec.Decode(&value); err != nil {
			return nil, ErrInvalid
		}
		if strconv.Itoa(at) == token {
			return value, nil
		}
	}
	return nil, nil
}
