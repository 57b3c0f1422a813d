package scripttest

import (
	"regexp"
	"strings"
)

type kind int

const (
	word   kind = iota // names and keywords
	quoted             // strings of either sort
	other              // numbers, operators and brackets; each is one byte, except numbers
)

// token is a piece of Lua: source[from:to].
type token struct {
	kind     kind
	text     string // for a string what is between its quotes, as written
	line     int
	from, to int
}

var lexLong = regexp.MustCompile(`^\[(=*)\[`)

const (
	digits = "0123456789"
	names  = digits + "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// begins returns how many of the first bytes of a text are in a set.
func begins(text, set string) int { return len(text) - len(strings.TrimLeft(text, set)) }

// lex splits Lua 5.1 into tokens and leaves comments out. A string or comment that is not
// closed ends with the source; the server reports what is wrong with it.
func lex(source string) (tokens []token) {
	line := 1
	for at := 0; at < len(source); {
		rest := source[at:]
		size, add, text := 1, other, ""
		comment := strings.HasPrefix(rest, "--")
		var long []string
		if bracket := strings.TrimPrefix(rest, "--"); strings.HasPrefix(bracket, "[") { // most do not, and the expression is slow
			long = lexLong.FindStringSubmatch(bracket)
		}
		switch {
		case rest[0] == '\n' || rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			comment = true
		case long != nil:
			closes := "]" + long[1] + "]"
			size = len(rest) - len(strings.TrimPrefix(rest, "--")) + len(long[0])
			inside, _, closed := strings.Cut(rest[size:], closes)
			text, add = inside, quoted
			size += len(inside)
			if closed {
				size += len(closes)
			}
		case comment:
			size = len(rest)
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				size = end
			}
		case rest[0] == '"' || rest[0] == '\'':
			for size < len(rest) && rest[size] != rest[0] {
				if rest[size] == '\\' {
					size++
				}
				size++
			}
			size = min(size, len(rest))
			text, add = rest[1:size], quoted
			size = min(size+1, len(rest))
		default:
			switch name := begins(rest, names); {
			case begins(rest, digits) > 0:
				size = begins(rest, names+".")
			case name > 0:
				add, size = word, name
			}
			text = rest[:size]
		}
		if !comment {
			tokens = append(tokens, token{add, text, line, at, at + size})
		}
		line += strings.Count(rest[:size], "\n")
		at += size
	}
	return tokens
}

// code returns the source with spaces in place of comments and strings. Lines and columns
// do not change.
func code(source string) string {
	blank := []byte(source)
	for i, b := range blank {
		if b != '\n' {
			blank[i] = ' '
		}
	}
	for _, t := range lex(source) {
		if t.kind != quoted {
			copy(blank[t.from:t.to], source[t.from:t.to])
		}
	}
	return string(blank)
}

// whole reports whether a list, KEYS or ARGV, is used other than by an element or by its
// length.
func whole(source, list string) bool {
	before := ""
	for tokens := lex(source); len(tokens) > 0; tokens = tokens[1:] {
		if t := tokens[0]; t.kind == word && t.text == list && before != "#" && (len(tokens) == 1 || tokens[1].text != "[") {
			return true
		}
		before = tokens[0].text
	}
	return false
}

// lineOfName returns the line in which a name that is not a field comes first, or 0.
func lineOfName(source, name string) int {
	dots := "" // what comes before: . and : make it a field, .. does not
	for _, t := range lex(source) {
		if t.kind == word && t.text == name && dots != "." && dots != ":" {
			return t.line
		}
		if t.kind == other && (t.text == "." || t.text == ":") {
			dots += t.text
		} else {
			dots = ""
		}
	}
	return 0
}

// call is a redis.call or redis.pcall as written.
type call struct {
	command string // in upper case; "" if it is not written as a string
	line    int
	returns int // where the return ends, if the statement returns this call; else 0
	from    int // where it begins
	to      int // the position after its closing bracket
}

// calls finds the calls, by the names redis.call and redis.pcall and by the names that
// the script gives them.
func calls(source string) (found []call) {
	tokens := lex(source)
	is := func(i int, texts ...string) bool {
		for j, text := range texts {
			if i+j < 0 || i+j >= len(tokens) || tokens[i+j].kind == quoted || tokens[i+j].text != text {
				return false
			}
		}
		return true
	}
	named := aliases(tokens, is)
	for i, t := range tokens {
		open := i + 1
		switch {
		case is(i, "redis", ".", "call"), is(i, "redis", ".", "pcall"):
			open = i + 3
		case t.kind != word || !named[t.text] || is(i-1, ".") || is(i-1, ":") || is(i-1, "function"):
			continue
		}
		if !is(open, "(") {
			continue
		}
		c := call{line: t.line, from: t.from, to: len(source)}
		if open+1 < len(tokens) && tokens[open+1].kind == quoted {
			c.command = strings.ToUpper(tokens[open+1].text)
		}
		if is(i-1, "return") {
			c.returns = tokens[i-1].to
		}
		depth := 0
		for _, t := range tokens[open:] {
			if t.kind == other && t.text == "(" {
				depth++
			} else if t.kind == other && t.text == ")" {
				depth--
			}
			if depth == 0 {
				c.to = t.to
				break
			}
		}
		found = append(found, c)
	}
	return found
}

// aliases returns the names in "local call, pcall = redis.call, redis.pcall".
func aliases(tokens []token, is func(i int, texts ...string) bool) map[string]bool {
	named := map[string]bool{}
	for i := range tokens {
		if !is(i, "local") || is(i+1, "function") {
			continue
		}
		var names []string
		for i++; i < len(tokens) && tokens[i].kind == word; i++ {
			names = append(names, tokens[i].text)
			if !is(i+1, ",") {
				i++
				break
			}
			i++
		}
		if !is(i, "=") {
			continue
		}
		depth, place := 0, 0
		for i++; i < len(tokens) && place < len(names); i++ {
			switch {
			case is(i, "local"), is(i, "return"), is(i, "function"), is(i, "if"), is(i, "for"), is(i, "while"):
				place = len(names)
			case is(i, "("), is(i, "{"), is(i, "["):
				depth++
			case is(i, ")"), is(i, "}"), is(i, "]"):
				depth--
			case depth == 0 && is(i, ","):
				place++
			case depth == 0 && (is(i, "redis", ".", "call") || is(i, "redis", ".", "pcall")) && !is(i+3, "("):
				named[names[place]] = true
			}
		}
	}
	return named
}

// untailed returns the source with brackets around each call that a return statement
// consists of. The meaning is the same, because a command has one reply. But without the
// brackets Lua has no line to report for such a call.
func untailed(source string) string {
	var b strings.Builder
	closing := map[int]int{}
	opening := map[int]bool{}
	for _, c := range calls(source) {
		if c.returns > 0 {
			opening[c.from] = true
			closing[c.to]++
		}
	}
	for i := 0; i <= len(source); i++ {
		b.WriteString(strings.Repeat(")", closing[i]))
		if opening[i] {
			b.WriteByte('(')
		}
		if i < len(source) {
			b.WriteByte(source[i])
		}
	}
	return b.String()
}
