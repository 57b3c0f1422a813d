package examples_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestTheChineseREADMEIsWhole finds each section, block of code, row of a table
// and link of the README in its translation, in the same order.
func TestTheChineseREADMEIsWhole(t *testing.T) {
	t.Parallel()
	english, chinese := page(t, "../README.md"), page(t, "../README.zh-CN.md")
	for _, of := range []struct {
		name  string
		least int
		parts func(string) []string
	}{
		{"sections", 20, func(text string) []string { return levels.FindAllString(prose(text), -1) }},
		{"blocks of code", 25, func(text string) []string { return fenced.FindAllString(text, -1) }},
		{"rows of tables", 15, func(text string) []string { return firstBars.FindAllString(prose(text), -1) }},
		{"items of lists", 15, func(text string) []string { return bullets.FindAllString(prose(text), -1) }},
		{"links", 30, targets},
	} {
		want, got := of.parts(english), of.parts(chinese)
		if len(want) < of.least {
			t.Errorf("the README has %d %s, want %d at least", len(want), of.name, of.least)
		}
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Errorf("%s, number %d: the translation has %q, want %q as in the README",
					of.name, i+1, at(got, i), at(want, i))
				break
			}
		}
	}
	for text, other := range map[string]string{english: "README.zh-CN.md", chinese: "README.md"} {
		if !strings.Contains(text, "]("+other+")") {
			t.Errorf("a README has no link to %s, want one", other)
		}
	}
}

// TestAnchorsLeadSomewhere has each link within a README lead to a section.
func TestAnchorsLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../README.md", "../README.zh-CN.md"} {
		text := page(t, name)
		var anchors []string
		for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(prose(text), -1) {
			anchors = append(anchors, anchor(m[1]))
		}
		within := regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(text, -1)
		if len(within) < 3 {
			t.Errorf("%s has %d links within, want 3 at least", name, len(within))
		}
		for _, m := range within {
			if !slices.Contains(anchors, m[1]) {
				t.Errorf("%s has no section #%s, want one", name, m[1])
			}
		}
	}
}

var (
	levels    = regexp.MustCompile(`(?m)^#+ `)
	fenced    = regexp.MustCompile("(?ms)^```.*?^```$")
	firstBars = regexp.MustCompile(`(?m)^\|`)
	bullets   = regexp.MustCompile(`(?m)^- `)
	linked    = regexp.MustCompile(`\]\(([^#)][^)]*)\)`)
)

func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func prose(markdown string) string { return fenced.ReplaceAllString(markdown, "") }

// targets is where a page leads to, but for its other language.
func targets(markdown string) (all []string) {
	for _, m := range linked.FindAllStringSubmatch(prose(markdown), -1) {
		if !strings.HasPrefix(m[1], "README") {
			all = append(all, m[1])
		}
	}
	return all
}

func at(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return "nothing"
}

// anchor is the name that a heading goes by in a link, as GitHub has it.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}
