package quickstart

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// screen is where the demo draws: at most 100 columns, in colour on a terminal.
type screen struct {
	out    io.Writer
	colour bool
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, colour: isTerminal(out) && os.Getenv("NO_COLOR") == ""}
}

// isTerminal says whether what is written there appears on a terminal.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (s *screen) linef(format string, args ...any) {
	fmt.Fprintln(s.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// title begins a framework's part.
func (s *screen) title(text string) {
	s.linef("")
	s.linef("━━ %s %s", text, strings.Repeat("━", 96-utf8.RuneCountInString(text)))
}

// headingf begins a step.
func (s *screen) headingf(format string, args ...any) {
	s.linef("")
	s.linef("  "+format, args...)
}

func (s *screen) green(text string) string { return s.paint(text, "32") }

func (s *screen) red(text string) string { return s.paint(text, "31") }

func (s *screen) paint(text, code string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// statuses writes status codes in a row.
func (s *screen) statuses(answers []answer) string {
	words := make([]string, len(answers))
	for i, a := range answers {
		words[i] = strconv.Itoa(a.status)
		if a.status == 200 {
			words[i] = s.green(words[i])
		} else {
			words[i] = s.red(words[i])
		}
	}
	return strings.Join(words, " ")
}

// columns writes two blocks side by side.
func (s *screen) columns(left, right []string) {
	const width = 44
	lines := max(len(left), len(right))
	left = append(left, make([]string, lines-len(left))...)
	right = append(right, make([]string, lines-len(right))...)
	for i := range lines {
		s.linef("  %-*s  %s", width, left[i], right[i])
	}
}
