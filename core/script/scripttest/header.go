package scripttest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/script"
)

// CheckHeader fails the test if the header of a script and its body disagree. It reports
// each fault by file and line. The header is the comment with which the file begins:
//
//	-- Keeps the highest score of a day.
//	--
//	-- KEYS[1]  the score
//	-- ARGV[1]  score
//	-- ARGV[2]  ttl, in milliseconds
//	-- returns  the highest score
//	-- effects  SET with PX where the score is higher
//
// These are the rules:
//
//   - Every KEYS[…] and ARGV[…] of the body is in the header, spelled as in the body, and
//     the other way round. KEYS[i] and ARGV[i] stand for all.
//   - If the line of an argument ends with "or nothing", a call may leave out that
//     argument and all after it.
//   - The header says what is returned and what the effects are: every command with which
//     the script may write or publish, in capitals, and no other.
//   - The body does not use _G, getfenv or loadstring, because Run cannot see what goes
//     through them.
func CheckHeader(tb testing.TB, s *script.Script) {
	tb.Helper()
	for _, f := range headerFaults(s.Source()) {
		tb.Errorf("%s%v", s.Name(), f)
	}
}

// fault is a fault in a line. Line 0 means that it is in no line.
type fault struct {
	line int
	text string
}

// String returns the text that follows the name of the file.
func (f fault) String() string {
	if f.line == 0 {
		return ": " + f.text
	}
	return fmt.Sprintf(":%d: %s", f.line, f.text)
}

var (
	reference = regexp.MustCompile(`\b(KEYS|ARGV)\s*(\[[^\]]+\])`)
	numbered  = regexp.MustCompile(`^(KEYS|ARGV)\[(\d+)\]$`)
	capitals  = regexp.MustCompile(`\b[A-Z]+\b`)
	optional  = regexp.MustCompile(`(?m)^-- ARGV\[(\d+)\].* or nothing\r?$`)
)

// hidden are the names that lead to redis without the shim.
var hidden = words("_G getfenv loadstring")

func headerFaults(source string) (found []fault) {
	add := func(line int, format string, args ...any) {
		found = append(found, fault{line, fmt.Sprintf(format, args...)})
	}
	if begins := misbegun(source); begins != "" {
		add(1, "the file does not begin with its header, but with %s", begins)
		return found
	}
	header := headerOf(source)
	body := code(source)

	told, used := references(header), references(body)
	for _, ref := range used {
		if !slices.ContainsFunc(told, ref.stands) && !slices.ContainsFunc(told, func(r fault) bool { return r.text == ref.text[:5]+"i]" }) {
			add(ref.line, "%s is used but not in the header", ref.text)
		}
	}
	for _, ref := range told {
		list := ref.text[:4]
		all := ref.text[5:] == "i]" && strings.Contains(body, list) || whole(source, list)
		if !all && !slices.ContainsFunc(used, ref.stands) {
			add(ref.line, "%s is in the header but not used", ref.text)
		}
	}

	for _, name := range hidden {
		if line := lineOfName(source, name); line > 0 {
			add(line, "scripttest cannot see what goes through %s", name)
		}
	}

	before, _, ok := strings.Cut(header, "-- effects")
	if !ok || !strings.Contains(header, "-- returns") {
		add(1, "the header does not say what the script returns and what its effects are")
	}
	effects := effectsOf(source)
	var called []string
	for _, c := range calls(source) {
		if !slices.Contains(called, c.command) && effect(c.command) && !slices.Contains(effects, c.command) {
			add(c.line, "%s is called but not among the effects", c.command)
		}
		called = append(called, c.command)
	}
	for _, t := range lex(source) {
		if t.kind == quoted { // a variable may name the command
			called = append(called, strings.ToUpper(t.text))
		}
	}
	for _, w := range effects {
		if effect(w) && !slices.Contains(called, w) {
			add(strings.Count(before, "\n")+1, "%s is among the effects but not called", w)
		}
	}
	return found
}

// misbegun returns what comes before the header, or "" if nothing does.
func misbegun(source string) string {
	switch {
	case strings.HasPrefix(source, "\ufeff"):
		return "a byte order mark, which Redis does not read: save the file as UTF-8 without one"
	case strings.HasPrefix(source, "#!"):
		return "#!, which Redis before 7 does not read and scripttest does not support"
	case strings.TrimLeft(source, " \t\r\n") != source:
		return "an empty line or a space"
	}
	return ""
}

// effectsOf returns the words in capitals after "effects".
func effectsOf(source string) []string {
	_, effects, _ := strings.Cut(headerOf(source), "-- effects")
	return capitals.FindAllString(effects, -1)
}

// spelled returns the commands that the body calls by name.
func spelled(source string) (commands []string) {
	for _, c := range calls(source) {
		commands = append(commands, c.command)
	}
	return commands
}

func headerOf(source string) string {
	size := 0
	for line := range strings.Lines(source) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		size += len(line)
	}
	return source[:size]
}

// references returns each KEYS[…] and ARGV[…] as written, once, with the line in which it
// comes first.
func references(text string) (all []fault) {
	for _, at := range reference.FindAllStringSubmatchIndex(text, -1) {
		ref := fault{strings.Count(text[:at[0]], "\n") + 1, text[at[2]:at[3]] + text[at[4]:at[5]]}
		if !slices.ContainsFunc(all, ref.stands) {
			all = append(all, ref)
		}
	}
	return all
}

func (f fault) stands(g fault) bool { return f.text == g.text }

// declared returns how many keys and arguments the header numbers, and how many of the
// arguments a call must pass. A number is -1 if the header names some of them by other
// than a number.
func declared(source string) (keys, args, least int) {
	most := map[string]int{}
	for _, ref := range references(headerOf(source)) {
		m := numbered.FindStringSubmatch(ref.text)
		if m == nil {
			most[ref.text[:4]] = -1
		} else if n, err := strconv.Atoi(m[2]); err == nil && most[m[1]] >= 0 {
			most[m[1]] = max(n, most[m[1]])
		}
	}
	keys, args = most["KEYS"], most["ARGV"]
	least = args
	if m := optional.FindStringSubmatch(headerOf(source)); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			least = min(args, n-1)
		}
	}
	return keys, args, least
}
