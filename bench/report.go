package main

import (
	"fmt"
	"slices"
	"strings"
)

// report is a page, and a picture where there is one.
type report struct {
	title    string
	prose    string
	sections []section
	picture  string
	glance   func(page string) (picture string, err error) // of what the page says; may be nil
}

// section is a heading and what stands below it. Its title is empty where it goes on
// with the section before.
type section struct {
	title, before string
	head          []string
	rows          [][]string
	after         string
}

// inRounds is how most reports tell that they measure.
func (r *results) inRounds() string {
	return fmt.Sprintf(`Each contestant was measured in %d rounds of %s, in shuffled order. The first of its table was measured
again and again in between. A figure is the median of the rounds, with its quartiles in brackets.
`, r.plan.rounds, r.plan.slice)
}

// files are the page, under a name that ends with .md, and its pictures.
func (p report) files(name string, r *results) (map[string]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nWritten by `make bench-peers` on %s: %s. Every figure below is computed from that "+
		"run.\n\n%s\n", p.title, r.when.UTC().Format("2 January 2006"), r.host, strings.TrimSpace(p.prose))
	for _, s := range p.sections {
		s.write(&b)
	}
	files := map[string]string{name: b.String()}
	if p.picture != "" {
		files[strings.TrimSuffix(name, ".md")+".svg"] = p.picture
	}
	if p.glance != nil {
		glance, err := p.glance(b.String())
		if err != nil {
			return nil, err
		}
		files[glanceFile] = glance
	}
	return files, nil
}

func (s section) write(b *strings.Builder) {
	if s.title != "" {
		fmt.Fprintf(b, "\n## %s\n", s.title)
	}
	if s.before != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(s.before))
	}
	if len(s.rows) > 0 {
		fmt.Fprintf(b, "\n| %s |\n|%s\n", strings.Join(s.head, " | "), strings.Repeat("---|", len(s.head)))
	}
	for _, row := range s.rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	if s.after != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(s.after))
	}
}

// column is one figure of each row: a spread, or something else that the format is for.
// A nil is printed as a dash.
type column struct {
	head   string
	format string
	figure func(row string) any
}

func (c column) text(row string) string {
	figure := c.figure(row)
	s, measured := figure.(spread)
	switch {
	case figure == nil || measured && s.rounds == 0:
		return "–"
	case measured:
		return s.text(c.format)
	}
	return fmt.Sprintf(c.format, figure)
}

// text has the quartiles of what was measured.
func (s spread) text(format string) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median, s.low, s.high)
}

// middle is the median alone, or nil.
func (s spread) middle() any {
	if s.rounds == 0 {
		return nil
	}
	return s.median
}

// table is a section with a row for each name.
func table(title string, names []string, columns []column, after string) section {
	s := section{title: title, head: []string{""}, after: after}
	for _, c := range columns {
		s.head = append(s.head, c.head)
	}
	for _, name := range names {
		row := []string{name}
		for _, c := range columns {
			row = append(row, c.text(name))
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// target is a figure of neap's and the bound that the project set for it.
type target struct {
	text         string
	figure       spread
	format, unit string // of figure and bound
	direction    direction
	bound        float64
}

// direction is on which side of the bound a figure is to be.
type direction string

const (
	atLeast  direction = "at least "
	atMost   direction = "at most "
	exact    direction = ""
	noTarget direction = "no target" // a figure that the reader compares
)

func (t target) met() bool {
	return t.direction == atLeast && t.figure.median >= t.bound || t.direction == atMost && t.figure.median <= t.bound ||
		t.figure.median == t.bound
}

func (t target) line() string {
	figure := fmt.Sprintf(t.format, t.figure.median)
	if t.figure.rounds > 1 {
		figure = t.figure.text(t.format)
	}
	line, verdict := fmt.Sprintf("- %s: %s%s", t.text, figure, t.unit), "**not met**"
	if t.direction == noTarget {
		return line
	}
	if t.met() {
		verdict = "met"
	}
	return line + fmt.Sprintf(", target %s"+t.format+": %s", t.direction, t.bound, verdict)
}

// cellTarget is a target in each cell of a way: a figure, or its ratio to that of base.
type cellTarget struct {
	text       string
	metric     metric
	way        way
	name, base string
	target     // the same in each cell
}

func (r *results) cellTargets(callers string, all ...cellTarget) []target {
	var targets []target
	for _, t := range all {
		for _, at := range r.plan.cells(0, t.way) {
			one := t.target
			one.text = fmt.Sprintf("%s, %d %s", t.text, at.goroutines, callers)
			if one.figure = r.of(t.metric, t.name, at); t.base != "" {
				one.figure = r.ratio(t.metric, t.name, t.base, at)
			}
			targets = append(targets, one)
		}
	}
	return targets
}

func targets(all []target) section {
	lines := make([]string, len(all))
	for i, t := range all {
		lines[i] = t.line()
	}
	return section{title: "neap's own targets", before: strings.Join(lines, "\n")}
}

// who tells what each contestant is. Its group has a column where that has a heading.
func (r *results) who(group string) section {
	s := section{title: "The contestants", rows: [][]string{{"", group, "what it is"}}}
	for _, c := range r.contestants {
		what := c.what
		if c.module != "" {
			what += " (" + versioned(c.module) + ")"
		}
		s.rows = append(s.rows, []string{c.name, c.group, what})
	}
	for i, row := range s.rows {
		if group == "" {
			s.rows[i] = slices.Delete(row, 1, 2)
		}
	}
	s.head, s.rows = s.rows[0], s.rows[1:]
	return s
}
