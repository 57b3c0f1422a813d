package scripttest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// exponent matches a number in the form in which tostring and .. write large and small
// numbers. It may stand by itself, or have a fraction and be so large that it is a number
// whatever is beside it, or be large and follow a word. Lua writes numbers in this form
// from 1e+14 on.
var exponent = regexp.MustCompile(`(?:^|[^\w.+/])(-?\d(?:\.\d+)?e[+-]\d{2,3})(?:$|\W)` +
	`|(-?\d\.\d{1,13}e\+(?:1[4-9]|2\d))|[A-Za-z_](\de\+(?:1[4-9]|2\d))(?:$|\W)`)

// exponents returns the numbers in exponent form in a text.
func exponents(text string) (found []string) {
	for {
		at := exponent.FindStringSubmatchIndex(text)
		if at == nil {
			return found
		}
		group := at[2:]
		for group[0] < 0 {
			group = group[2:]
		}
		found = append(found, text[group[0]:group[1]])
		text = text[group[1]:]
	}
}

// made returns the numbers in a text that the script itself brought into this form. It
// leaves out the numbers that the script's caller or Redis passed in this form, and those
// in the script's own strings.
func (w *witness) made(text string) (found []string) {
	for _, n := range exponents(text) {
		if !w.given(n) {
			found = append(found, n)
		}
	}
	return found
}

func (w *witness) given(number string) bool {
	has := func(text string) bool { return slices.Contains(exponents(text), number) }
	for _, arg := range w.call.Args {
		switch arg := arg.(type) {
		case string:
			if has(arg) {
				return true
			}
		case []byte:
			if has(string(arg)) {
				return true
			}
		} // numbers are sent without an exponent
	}
	written := func(t token) bool { return t.kind == quoted && has(t.text) }
	return slices.ContainsFunc(w.call.Keys, has) || slices.ContainsFunc(w.told, has) ||
		slices.ContainsFunc(lex(w.script.Source()), written)
}

// advice says how to write a number so that no digit is lost.
func advice(number string) string {
	format := "%.0f"
	if strings.Contains(number, "e-") {
		format = "%.17g"
	}
	return fmt.Sprintf("string.format('%s', n) keeps its digits", format)
}

// numbersIn looks for such numbers in a reply.
func (w *witness) numbersIn(reply any) {
	switch reply := reply.(type) {
	case string:
		for _, n := range w.made(reply) {
			w.addf(0, "it replied the number %s: %s", n, advice(n))
		}
	case []any:
		for _, one := range reply {
			w.numbersIn(one)
		}
	}
}
