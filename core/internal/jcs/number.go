package jcs

import (
	"math"
	"strconv"
	"strings"
)

// appendNumber writes a number as ECMAScript does (RFC 8785 section 3.2.2.3): with the fewest
// digits that make the same double.
func appendNumber(out []byte, text string) ([]byte, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil { // its magnitude is that of no double
		return out, ErrNumber
	}
	if f == 0 {
		if digits, _ := decimal(text); digits != "" {
			return out, ErrNumber
		}
		return append(out, '0'), nil // also for -0
	}
	from := len(out)
	format := byte('f')
	if size := math.Abs(f); size < 1e-6 || size >= 1e21 {
		format = 'e'
	}
	out = strconv.AppendFloat(out, f, format, -1, 64)
	if n := len(out); format == 'e' && out[n-3] == '-' && out[n-2] == '0' { // such as e-07, which is e-7 here
		out[n-2] = out[n-1]
		out = out[:n-1]
	}
	if !precise(text, string(out[from:])) {
		return out, ErrNumber
	}
	return out, nil
}

// mostDigits are the significant digits that tell every double from the next.
const mostDigits = 17

// precise reports whether a text is no more precise than a double. An integer must be the one that
// is written, because a reader of integers would tell it from others that make the same double.
// Otherwise a text may have the digits that some writers give to every double.
func precise(text, written string) bool {
	digits, exponent := decimal(text)
	if exponent < 0 {
		return len(digits) <= mostDigits
	}
	same, exact := decimal(written)
	return digits == same && exponent == exact
}

// decimal returns the significant digits of a number other than 0, and the exponent of ten of the
// last one. The digits of 0 are "". The exponent of a number in the range of a double is an int.
func decimal(text string) (digits string, exponent int) {
	mantissa, after := text, ""
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa, after = text[:at], text[at+1:]
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exponent, _ = strconv.Atoi(after)
	exponent -= len(fraction)
	kept := strings.TrimRight(digits, "0")
	return kept, exponent + len(digits) - len(kept)
}
