package gate

import (
	"regexp"
	"strings"
)

const (
	fieldIdempotencyKey = "Idempotency-Key"
	maxIdempotencyKey   = 255
)

var (
	errKeyAbsent = missing(400, "The request lacks the header field Idempotency-Key; send a new value for each operation, and the same when repeating it")
	errKeyTwice  = Refuse(400, "The request has more than one header field Idempotency-Key; send it once")
	errKeyList   = Refuse(400, `The header field Idempotency-Key is a list; send one value, in double quotes if it has a comma`)
	errKeyQuotes = Refuse(400, `The header field Idempotency-Key is not well quoted; send it bare, or in double quotes with a \ before each " and \ in it`)
	errKeyEmpty  = Refuse(400, "The header field Idempotency-Key is empty; send 1 to 255 printable ASCII characters")
	errKeyLong   = Refuse(400, "The header field Idempotency-Key is too long; send 1 to 255 printable ASCII characters")
	errKeyBytes  = Refuse(400, "The header field Idempotency-Key has characters that are not printable ASCII; send 1 to 255 printable ASCII characters")
)

// keyParameters matches the parameters of RFC 9651 section 4.2.3.2, in text that is
// printable ASCII. Byte sequences and display strings are not decoded.
var keyParameters = regexp.MustCompile(`^(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:` + strings.Join([]string{
	`-?\d{1,15}`,                      // integer
	`-?\d{1,12}\.\d{1,3}`,             // decimal
	`"(?:[^"\\]|\\["\\])*"`,           // string
	"[A-Za-z*][\\w!#$%&'*+.^`|~:/-]*", // token
	`:[A-Za-z0-9+/]*=*:`,              // byte sequence
	`\?[01]`,                          // boolean
	`@-?\d{1,15}`,                     // date
	`%"(?:[^"%]|%[0-9a-f]{2})*"`,      // display string
}, "|") + `))?)*$`)

// idempotencyKey reads the header field Idempotency-Key. Its value is a String, as in
// draft-ietf-httpapi-idempotency-key-header-07 section 2.1, whose parameters are ignored
// (RFC 9651 section 2). It may also be bare, as many clients send it. "abc" and abc are
// the same key, of 1 to 255 printable ASCII characters.
//
// A bare key is taken as it is, including a semicolon and what follows. It may have no
// double quote, and no comma: with a comma a proxy folds two lines into one.
//
// idempotencyKey fails with refusals. It fails with ErrMissing only if there is no such
// line: a client that sends an empty one believes that it is safe.
func idempotencyKey(r Request) (string, error) {
	lines := r.Header(fieldIdempotencyKey)
	switch {
	case unsure(r, fieldIdempotencyKey):
		return "", errTrailer
	case len(lines) == 0:
		return "", errKeyAbsent
	case len(lines) > 1:
		return "", errKeyTwice
	}
	key := strings.Trim(lines[0], " \t") // RFC 9110 section 5.5
	if strings.IndexFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) >= 0 {
		return "", errKeyBytes
	}
	switch {
	case strings.HasPrefix(key, `"`):
		unquoted, rest, ok := unquote(key)
		switch {
		case ok && keyParameters.MatchString(rest):
		case ok && strings.Contains(rest, ","):
			return "", errKeyList
		default:
			return "", errKeyQuotes
		}
		key = unquoted
	case strings.Contains(key, `"`):
		return "", errKeyQuotes
	case strings.Contains(key, ","):
		return "", errKeyList
	}
	switch {
	case key == "":
		return "", errKeyEmpty
	case len(key) > maxIdempotencyKey:
		return "", errKeyLong
	}
	return key, nil
}

// unquote reads the String at the start of s (RFC 9651 section 4.2.5) and returns what
// follows it as rest. s begins with a quote.
func unquote(s string) (text, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", "", false
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}
