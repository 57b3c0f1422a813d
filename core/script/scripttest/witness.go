package scripttest

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
)

//go:embed shim.lua
var shimText string

// shim puts code before a script that reports what the script does. The script's lines
// keep their numbers.
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

	told  []string // replies of Redis with numbers in exponent form
	reply any
	err   error
	lacks string // what this server lacks and others have
	found []fault
}

func (w *witness) addf(line int, format string, args ...any) {
	f := fault{line, fmt.Sprintf(format, args...)}
	if !slices.Contains(w.found, f) {
		w.found = append(w.found, f)
	}
}

var (
	place   = regexp.MustCompile(`(?:@?user_script|^(?:<string>)?):\s?(\d+): ?`)
	lacking = regexp.MustCompile(`Unknown Redis command|unknown subcommand|nonexistent global variable '(?:cmsgpack|struct|bit)'|registry overflow`)
	global  = regexp.MustCompile(`^Script attempted to (?:create|access nonexistent) global variable '(\w+)'`)
)

// hear reads the shim's report.
func (w *witness) hear(report any) {
	parts, ok := report.([]any)
	if !ok || len(parts) < 5 {
		w.err = errors.New("no report")
		w.addf(0, "the script ended without its shim: %v", report)
		return
	}
	log := w.logged(parts[0])
	for _, text := range list(parts[2]) {
		w.told = append(w.told, text.(string))
	}
	for _, c := range log {
		w.command(c)
	}
	for i, at := range list(parts[1]) {
		if at == "before" {
			at = lastWrite(log, w.call.Keys[i])
		}
		if at != "" && !w.call.Forever {
			w.addf(number(at), "KEYS[%d] is left without a time to live", i+1)
		}
	}
	w.declared()
	if len(parts) > 5 {
		w.reply = parts[5]
	}
	w.numbersIn(w.reply)
	failure, failed := w.reply.(error)
	switch {
	case failed:
		w.failed(number(parts[4]), failure.Error())
		if w.call.Fails != "" && !(*wire.Script)(w.script).IsOwn(failure.Error()) {
			w.addf(number(parts[4]), "it returns the error %q, which its callers take for a proxy's: write the text as one string, or raise it by error()", failure.Error())
		}
	case parts[3] != "replied":
		w.failed(number(parts[4]), fmt.Sprint(parts[3]))
	case w.call.Fails != "":
		w.addf(0, "it replied %v and no error with %q", w.reply, w.call.Fails)
	case w.call.Want != nil && !same(w.call.Want, w.reply):
		w.addf(0, "it replied %#v, want %#v", w.reply, w.call.Want)
	}
}

// ran is a command that the script called.
type ran struct {
	line string
	done bool // it was not refused, and did not reply nil
	args []string
	text []bool // which arguments were not numbers
}

func (w *witness) logged(log any) (all []ran) {
	for _, one := range list(log) {
		seen := list(one)
		if len(seen) < 3 {
			continue // a call without a command, for which Redis reports an error
		}
		c := ran{line: seen[0].(string), done: seen[1] == "done"}
		for _, arg := range seen[2:] {
			text, _ := arg.(string)
			c.text, c.args = append(c.text, text[0] == '$'), append(c.args, text[1:])
		}
		all = append(all, c)
	}
	return all
}

func (w *witness) command(c ran) {
	line, name := number(c.line), strings.ToUpper(c.args[0])
	for i, arg := range c.args {
		for _, n := range w.made(arg) {
			if i > 0 && (c.text[i] || strings.Contains(n, "e+")) {
				w.addf(line, "%s is passed the number %s: %s", name, n, advice(n))
			}
		}
	}
	if source := w.script.Source(); effect(name) && !slices.Contains(effectsOf(source), name) && !slices.Contains(spelled(source), name) {
		w.addf(line, "%s is called but not among the effects", name)
	}
	if slices.Contains(wholesale, name) {
		w.addf(line, "%s is about every key there is, and on a cluster about the keys of one node: a script may touch only the keys in KEYS", name)
	}
	for _, key := range keysOf(c.args) {
		if !slices.Contains(w.call.Keys, key) {
			w.addf(line, "%s touches %q, which is not in KEYS", name, key)
		}
	}
}

// lastWrite returns the line that last changed a key, or "" if none did.
func lastWrite(log []ran, key string) any {
	for _, c := range slices.Backward(log) {
		if c.done && slices.Contains(written(c.args), key) {
			return c.line
		}
	}
	return ""
}

// failed handles an error. The call may expect it.
func (w *witness) failed(line int, text string) {
	if m := place.FindStringSubmatchIndex(text); m != nil {
		if line == 0 {
			line = number(text[m[2]:m[3]])
		}
		text = text[:m[0]] + text[m[1]:]
	}
	w.err = errors.New(text)
	if w.call.Fails != "" && strings.Contains(text, w.call.Fails) {
		return
	}
	if w.on == embedded {
		if m := global.FindStringSubmatch(text); m != nil {
			line = lineOfName(w.script.Source(), m[1]) // the line in the text is in code of miniredis
		}
		if line == 1 {
			line = 0 // it is the shim's line
		}
		if m := lacking.FindString(text); m != "" {
			w.lacks = w.script.Name() + fault{line, m}.String()
			return
		}
	}
	w.addf(line, "%s", text)
}

// declared compares how much the call passes with what the header numbers.
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

// lineOf returns the last line that contains part, or the first line.
func lineOf(text, part string) int {
	return strings.Count(text[:max(strings.LastIndex(text, part), 0)], "\n") + 1
}

func number(v any) int {
	text, _ := v.(string)
	n, _ := strconv.Atoi(text)
	return n
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}
