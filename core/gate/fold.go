package gate

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns a key whose values count the same in capital and in small letters, such as
// e-mail addresses. Without it Bob@example.com and bob@example.com are two subjects, and
// an attacker has as many guesses at each spelling.
//
// Fold applies Unicode's full case folding and then NFC (The Unicode Standard, section
// 3.13, D145). So ß counts as SS, and é counts the same whether it is one character or an
// e with an accent after it. Characters beyond U+FFFF stay decomposed. A letter with more
// than 30 marks may have several spellings. Bytes that are not UTF-8 stay as they are. Fold
// ignores no accents, dots or tags. If your database finds accounts more leniently than that,
// as some collations do, limit by the account that it found.
//
// Fold changes values and leaves their kinds as they are, in each part of a [Join] too.
// Put a key of your own into [Tag] first. [ByPath] escapes letters beyond ASCII, and Fold
// does not fold those. Fold panics on a nil key.
func Fold(key Key) Key {
	mustKey("Fold", key)
	return func(r Request) (string, error) {
		s, err := subject(r, key)
		if err != nil {
			return "", err
		}
		return foldSubject(s), nil
	}
}

// foldSubject looks for the parts of a Join in a whole subject, and in the value of a
// Tag. If a key of the user's own returns what a client wrote, that may look like a Join
// too. Then its parts are folded, and two spellings that differ in the kind of a part
// stay two subjects.
func foldSubject(s string) string {
	value := untagged(s)
	tag := s[:len(s)-len(value)]
	if tag == "" || strings.HasPrefix(tag, "key:") {
		if parts, ok := joined(value); ok {
			for i, part := range parts {
				parts[i] = foldSubject(part)
			}
			return tag + join(parts)
		}
	}
	if name, after, ok := strings.Cut(value, "="); tag == "" && ok && isValueName(name) {
		tag, value = name+"=", after
	}
	return tag + fold(value)
}

func fold(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return composed(cherokee.Replace(cases.Fold().String(norm.NFD.String(s))))
		}
	}
	return strings.ToLower(s)
}

// composed returns the NFC of s. Characters beyond U+FFFF stay decomposed: x/text composes by
// the lower 16 bits of two characters, and would make U+1304B and U+3099 the same as U+304B
// and U+3099.
func composed(s string) string {
	if strings.IndexFunc(s, isBeyondBMP) < 0 {
		return norm.NFC.String(s)
	}
	var b strings.Builder
	for rest := norm.NFD.String(s); rest != ""; {
		at := strings.IndexFunc(rest, isBeyondBMP)
		if at < 0 {
			at = len(rest)
		}
		b.WriteString(norm.NFC.String(rest[:at]))
		_, size := utf8.DecodeRuneInString(rest[at:])
		b.WriteString(rest[at : at+size])
		rest = rest[at+size:]
	}
	return b.String()
}

func isBeyondBMP(r rune) bool { return r > 0xffff }

// cherokee replaces Cherokee's small letters with capitals, as Unicode's folding does.
// [cases.Fold] does the opposite.
var cherokee = func() *strings.Replacer {
	var pairs []string
	for small := rune(0xab70); small <= 0xabbf; small++ {
		pairs = append(pairs, string(small), string(small-0xab70+0x13a0))
	}
	for small := rune(0x13f8); small <= 0x13fd; small++ {
		pairs = append(pairs, string(small), string(small-8))
	}
	return strings.NewReplacer(pairs...)
}()
