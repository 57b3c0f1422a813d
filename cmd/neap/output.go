package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
)

// plain is text that cannot control a terminal: unprintable characters are escaped as in Go.
func plain(text string) string {
	if strings.IndexFunc(text, func(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }) < 0 {
		return text
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// show prints a result: as JSON, or as text by tell.
func (a *app) show(result any, tell func(w *page)) error {
	if a.JSON {
		return a.json(result)
	}
	w := &page{tabs: tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)}
	tell(w)
	return w.tabs.Flush()
}

func (a *app) json(result any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(result); err != nil {
		return err
	}
	var safe strings.Builder
	for _, c := range b.String() { // encoding/json leaves characters that some terminals obey
		if c == '\n' || unicode.IsPrint(c) {
			safe.WriteRune(c)
		} else {
			for _, unit := range utf16.AppendRune(nil, c) {
				fmt.Fprintf(&safe, `\u%04x`, unit)
			}
		}
	}
	_, err := io.WriteString(a.out, safe.String())
	return err
}

// page is text for people: lines, and tables of cells in columns.
type page struct{ tabs *tabwriter.Writer }

// row is a line of a table.
func (w *page) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = plain(text(cell))
	}
	fmt.Fprintln(w.tabs, strings.TrimRight(strings.Join(texts, "\t"), "\t"))
}

// linef ends the table before it.
func (w *page) linef(format string, args ...any) {
	_ = w.tabs.Flush()
	fmt.Fprintln(w.tabs, plain(fmt.Sprintf(format, args...)))
	_ = w.tabs.Flush()
}

func (w *page) lines(all []string) {
	for _, line := range all {
		w.linef("%s", line)
	}
}

// text is a cell.
func text(cell any) string {
	switch cell := cell.(type) {
	case time.Duration:
		return span(cell)
	case bool:
		if cell {
			return "yes"
		}
		return "no"
	case int64:
		return thousands(cell)
	case int:
		return thousands(int64(cell))
	}
	return fmt.Sprint(cell)
}

// span is a duration as people read it: no finer than a millisecond, and nothing for 0.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d >= time.Minute:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Millisecond)
	}
	return short(d)
}

// short writes no units of 0.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// count is a number with its noun.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(int64(n)) + " " + one + "s"
}

// sink is what a command prints to. It keeps the first error of a write.
type sink struct {
	io.Writer

	err error
}

func (s *sink) Write(p []byte) (n int, err error) {
	if n, err = s.Writer.Write(p); err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// failed is the error if something could not be printed.
func (s *sink) failed() error {
	switch {
	case s.err == nil:
		return nil
	case errors.Is(s.err, syscall.EPIPE): // its reader has enough, as head has
		return &failure{exitOutput, errSilent}
	}
	return &failure{exitOutput, fmt.Errorf("the output could not be written: %w; if you asked for a change, it may have happened: look again", s.err)}
}

// fail says what went wrong, and returns the exit status.
func (a *app) fail(err error) int {
	code := status(err)
	if err == nil || errors.Is(err, errSilent) {
		return code
	}
	message := a.message(err)
	if a.JSON && a.json(map[string]any{"error": map[string]any{"exit": code, "message": message}}) == nil {
		return code
	}
	fmt.Fprintln(a.errs, "neap: "+plain(message))
	return code
}

// errChanged is the error if what a question was about has become something else before the answer.
var errChanged = &failure{exitLeft, errors.New("nothing was changed: it is not what you were asked about any more; look again")}

// confirm asks before a change that cannot be undone. Without a yes it returns an error, and nothing is changed.
func (a *app) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	fmt.Fprint(a.errs, plain(question)+" [y/N] ")
	line := func() ([]byte, error) { return bufio.NewReader(a.in).ReadBytes('\n') }
	text, interrupted, _ := typed(ctx, line)
	if interrupted {
		fmt.Fprintln(a.errs)
	}
	if answer := strings.ToLower(strings.TrimSpace(string(text))); answer == "y" || answer == "yes" {
		return nil
	}
	return &failure{exitLeft, errors.New("nothing was changed: answer yes, or give --yes")}
}

// typed is what read reads from standard input, unless the context ends first: a terminal does not end a read at Ctrl-C.
func typed(ctx context.Context, read func() ([]byte, error)) (text []byte, interrupted bool, err error) {
	type input struct {
		text []byte
		err  error
	}
	done := make(chan input, 1)
	go func() {
		text, err := read()
		done <- input{text, err}
	}()
	select {
	case in := <-done:
		return in.text, false, in.err
	case <-ctx.Done():
		return nil, true, nil
	}
}
