package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestChinesePagesAreWhole finds each section, block of code, row of a table, item of a
// list and link of a page in its translation, in the same order.
func TestChinesePagesAreWhole(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for _, name := range markdown(t) {
		translation := inChinese(name)
		if _, err := os.Stat(translation); err != nil || translation == name {
			continue
		}
		english, chinese := read(t, name), read(t, translation)
		for what, parts := range map[string]func(string) []string{
			"sections":       func(text string) []string { return levels.FindAllString(prose(text), -1) },
			"blocks of code": func(text string) []string { return fenced.FindAllString(text, -1) },
			"rows of tables": func(text string) []string { return firstBars.FindAllString(prose(text), -1) },
			"items of lists": func(text string) []string { return bullets.FindAllString(prose(text), -1) },
			"links":          func(text string) []string { return targets(text, filepath.Base(name), filepath.Base(translation)) },
		} {
			want, got := parts(english), parts(chinese)
			found[what] += len(want)
			if what == "links" {
				for i := range want {
					want[i] = translated(t, name, want[i])
				}
			}
			for i := range max(len(want), len(got)) {
				if at(want, i) != at(got, i) {
					t.Errorf("%s, number %d: %s has %q, want %q as in %s", what, i+1, translation, at(got, i), at(want, i), name)
					break
				}
			}
		}
		for from, to := range map[string]string{name: translation, translation: name} {
			if !strings.Contains(read(t, from), "]("+filepath.Base(to)+")") {
				t.Errorf("%s has no link to its other language, want one to %s", from, filepath.Base(to))
			}
		}
	}
	for what, least := range map[string]int{"sections": 50, "blocks of code": 40, "rows of tables": 30, "items of lists": 100, "links": 80} {
		if found[what] < least {
			t.Errorf("the pages with a translation have %d %s, want %d at least", found[what], what, least)
		}
	}
}

// TestChineseLinksToEnglishAreMarked has each link of a Chinese page that leads to a page
// without a translation say so.
func TestChineseLinksToEnglishAreMarked(t *testing.T) {
	t.Parallel()
	const mark = "（英文）" //nolint:gosmopolitan // those pages are Chinese
	marks := 0
	for _, name := range markdown(t) {
		if !strings.HasSuffix(name, chineseSuffix) {
			continue
		}
		text := prose(read(t, name))
		for _, m := range linked.FindAllStringSubmatchIndex(text, -1) {
			link := text[m[2]:m[3]]
			file, _, _ := strings.Cut(link, "#")
			if elsewhere.MatchString(link) || filepath.Ext(file) != ".md" || inChinese(file) == filepath.Base(name) {
				continue
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(name), inChinese(file)))
			switch marked := strings.HasPrefix(text[m[1]:], mark); {
			case marked:
				if marks++; err == nil {
					t.Errorf("%s says that %s is English, want no %s", name, link, mark)
				}
			case err != nil:
				t.Errorf("%s has a link to %s, want %s behind it", name, link, mark)
			}
		}
	}
	if marks < 15 {
		t.Errorf("got %d links that are marked as English, want 15 at least", marks)
	}
}

const chineseSuffix = ".zh-CN.md"

// inChinese is the name of a page's translation.
func inChinese(name string) string {
	if strings.HasSuffix(name, chineseSuffix) {
		return name
	}
	return strings.TrimSuffix(name, ".md") + chineseSuffix
}

// translated is where the translation of a page leads to with the translation of a link:
// to the same place, or to its translation if there is one.
func translated(t *testing.T, name, link string) string {
	t.Helper()
	file, heading, _ := strings.Cut(link, "#")
	target := name
	if file != "" {
		target = filepath.Join(filepath.Dir(name), file)
	}
	if _, err := os.Stat(inChinese(target)); err != nil || elsewhere.MatchString(link) || filepath.Ext(target) != ".md" {
		return link
	}
	if file != "" {
		file = inChinese(file)
	}
	if heading == "" {
		return file
	}
	if i := slices.Index(anchors(read(t, target)), heading); i >= 0 {
		heading = at(anchors(read(t, inChinese(target))), i)
	}
	return file + "#" + heading
}

var (
	levels    = regexp.MustCompile(`(?m)^#+ `)
	fenced    = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```$")
	firstBars = regexp.MustCompile(`(?m)^\|`)
	bullets   = regexp.MustCompile(`(?m)^ *(?:-|\d+\.) `)
	linked    = regexp.MustCompile(`\]\(([^)]+)\)`)
)

// prose is a page without its blocks of code.
func prose(markdown string) string {
	var kept strings.Builder
	fence := false
	for line := range strings.Lines(markdown) {
		switch {
		case strings.HasPrefix(strings.TrimLeft(line, " \t"), "```"):
			fence = !fence
		case !fence:
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// targets is where a page leads to, but for its other language.
func targets(text string, languages ...string) (all []string) {
	for _, m := range linked.FindAllStringSubmatch(prose(text), -1) {
		if !slices.Contains(languages, m[1]) {
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
