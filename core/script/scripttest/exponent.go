package scripttest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// exponent is a number as tostring and .. write it: by itself, with a fraction and
// so large that it is one whatever stands beside it, or large behind a word. From
// 1e+14 on Lua writes them so.
var exponent = regexp.MustCompile(`(?:^|[^\w.+/])(-?\d(?:\.\d+)?e[+-]\d{2,3})(?:$|\W)` +
	`|(-?\d\.\d{1,13}e\+(?:1[4-9]|2\d))|[A-Za-z_](\de\+(?:1[4-9]|2\d))(?:$|\W)`)

// exponents are the numbers in exponent form in a text.
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

// made are the numbers of a text that the script brought into this form: neither
// its caller nor Redis gave them to it so, and none of its strings has them.
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

// advice is how to write a number so that none of it is lost.
func advice(number string) string {
	format := "%.0f"
	if strings.Contains(number, "e-") {
		format = "%.17g"
	}
	return fmt.Sprintf("string.format('%s', n) keeps its digits", format)
}

// numbersIn looks through a reply.
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
