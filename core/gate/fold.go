package gate

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns a key whose values count alike in capital and in small letters, such
// as e-mail addresses. Without it Bob@example.com and bob@example.com are two
// subjects, and an attacker has as many guesses at each spelling.
//
// It applies Unicode's full case folding and then NFC (The Unicode Standard,
// section 3.13, D145): ß counts as SS, and é counts alike as one character and as
// e with an accent behind it. Bytes that are not UTF-8 stay as they are. It ignores
// no accents, dots or tags. If your database finds accounts more leniently than
// that, as some collations do, limit by the account that it found.
//
// Fold changes the values and leaves their kinds as they are, in each part of a
// [Join] too. Put a key of your own into [Tag] first. [ByPath] escapes the letters
// beyond ASCII, and Fold does not fold those. Fold panics on a nil key.
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

// foldSubject looks for the parts of a Join in a whole subject, and in what Tag
// stands around. If a key of the caller's own returns what a client wrote, that may
// look like a Join too; then its parts are folded, and two spellings that differ in
// a part's kind stay two subjects.
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
	return tag + fold(value)
}

func fold(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return norm.NFC.String(cherokee.Replace(cases.Fold().String(norm.NFD.String(s))))
		}
	}
	return strings.ToLower(s)
}

// cherokee writes capitals for Cherokee's small letters, as Unicode's folding does.
// [cases.Fold] exchanges the two instead.
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
