package scripttest

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/neap-go/neap/core/script"
)

//go:embed shim.lua
var shimText string

// shim has a script report what it does. Its lines keep their numbers.
func shim(source string, level int) string {
	var one []string
	for line := range strings.Lines(shimText) {
		if !strings.HasPrefix(line, "--") {
			one = append(one, strings.TrimSpace(line))
		}
	}
	before := strings.Replace(strings.Join(one, " "), "LEVEL", strconv.Itoa(level), 1)
	return before + " " + untailed(source) + "\nend)"
}

// witness knows what one call of a script did.
type witness struct {
	script *script.Script
	call   Call
	on     string

	reply any
	err   error
	found []fault
}

func (w *witness) addf(line int, format string, args ...any) {
	f := fault{line, fmt.Sprintf(format, args...)}
	if !slices.Contains(w.found, f) {
		w.found = append(w.found, f)
	}
}

var (
	place    = regexp.MustCompile(`(?:@?user_script|^(?:<string>)?):\s?(\d+): ?`)
	exponent = regexp.MustCompile(`(?:^|[^\w.+/=])(-?\d(?:\.\d+)?e[+-]\d{2,3})(?:$|[^\w])`)
)

// hear reads the shim's report.
func (w *witness) hear(report any) {
	parts, ok := report.([]any)
	if !ok || len(parts) < 4 {
		w.err = errors.New("no report")
		w.addf(0, "the script ended without its shim: %v", report)
		return
	}
	log, _ := parts[0].([]any)
	for _, one := range log {
		if seen, ok := one.([]any); ok && len(seen) > 1 {
			w.command(seen)
		}
	}
	lines, _ := parts[1].([]any)
	for i, at := range lines {
		if at != "" && at != "before" && !w.call.Forever {
			w.addf(number(at), "KEYS[%d] is left without a time to live", i+1)
		}
	}
	w.declared()
	if len(parts) > 4 {
		w.reply = parts[4]
	}
	failure, failed := w.reply.(error)
	switch {
	case failed:
		w.failed(0, failure.Error())
	case parts[2] != "replied":
		w.failed(number(parts[3]), fmt.Sprint(parts[2]))
	case w.call.Fails != "":
		w.addf(0, "it replied %v and no error with %q", w.reply, w.call.Fails)
	case w.call.Want != nil && !same(w.call.Want, w.reply):
		w.addf(0, "it replied %#v, want %#v", w.reply, w.call.Want)
	}
}

// command looks at one command: its line, and its arguments behind a sign each.
func (w *witness) command(seen []any) {
	line := number(seen[0])
	args := make([]string, len(seen)-1)
	for i, arg := range seen[1:] {
		text, _ := arg.(string)
		args[i] = text[1:]
		if m := exponent.FindStringSubmatch(args[i]); m != nil && i > 0 && !w.given(m[1]) &&
			(text[0] == '$' || strings.Contains(m[1], "e+")) {
			w.addf(line, "%s is passed the number %s: string.format('%%.0f', n) keeps its digits", strings.ToUpper(args[0]), m[1])
		}
	}
	for _, key := range keysOf(args) {
		if !slices.Contains(w.call.Keys, key) {
			w.addf(line, "%s touches %q, which is not in KEYS", strings.ToUpper(args[0]), key)
		}
	}
}

// given says that a number was written so by who called the script.
func (w *witness) given(text string) bool {
	for _, arg := range w.call.Args {
		switch arg := arg.(type) {
		case string:
			if strings.Contains(arg, text) {
				return true
			}
		case []byte:
			if strings.Contains(string(arg), text) {
				return true
			}
		} // numbers are sent without an exponent
	}
	return slices.ContainsFunc(w.call.Keys, func(key string) bool { return strings.Contains(key, text) })
}

// failed is about an error, which the call may have been made for.
func (w *witness) failed(line int, text string) {
	if m := place.FindStringSubmatchIndex(text); m != nil {
		if line == 0 {
			line = number(text[m[2]:m[3]])
		}
		text = text[:m[0]] + text[m[1]:]
	}
	w.err = errors.New(text)
	if w.call.Fails == "" || !strings.Contains(text, w.call.Fails) {
		w.addf(line, "%s", text)
	}
}

// declared compares what the call passes with what the header numbers.
func (w *witness) declared() {
	header := headerOf(w.script.Source())
	keys, args, least := declared(header)
	if n := len(w.call.Keys); keys >= 0 && n != keys {
		w.addf(lineOf(header, "KEYS["), "the header has %d keys, and the call passes %d", keys, n)
	}
	if n := len(w.call.Args); args >= 0 && (n < least || n > args) {
		w.addf(lineOf(header, "ARGV["), "the header has %d arguments, and the call passes %d", args, n)
	}
}

// lineOf is the last line with part in it, or the first line.
func lineOf(text, part string) int {
	return strings.Count(text[:max(strings.LastIndex(text, part), 0)], "\n") + 1
}

func number(v any) int {
	text, _ := v.(string)
	n, _ := strconv.Atoi(text)
	return n
}
