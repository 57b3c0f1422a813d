package examples_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestLinksLeadSomewhere follows each relative link of every Markdown file to a file of
// the repository, and to a heading if the link names one.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages, links := markdown(t), 0
	for _, name := range pages {
		text := read(t, name)
		if n := len(fences.FindAllString(text, -1)); n%2 != 0 {
			t.Errorf("%s has %d lines that begin or end a block of code, want an even number", name, n)
		}
		for _, l := range leads(name, text) {
			links++
			info, err := os.Stat(l.file)
			switch {
			case !strings.HasPrefix(l.file, "../") || strings.HasPrefix(l.file, "../../"):
				t.Errorf("%s leads to %s, which is outside of the repository", name, l)
			case err != nil:
				t.Errorf("%s leads to %s: got %v, want a file", name, l, err)
			case l.anchor == "" || info.IsDir() || filepath.Ext(l.file) != ".md":
			case !slices.Contains(anchors(read(t, l.file)), l.anchor):
				t.Errorf("%s leads to %s: got no such heading there", name, l)
			}
		}
	}
	if len(pages) < 70 || links < 600 {
		t.Errorf("got %d links on %d pages, want 600 on 70 at least", links, len(pages))
	}
}

// TestPagesAreListed finds every page of docs in the index, and reaches every page of its
// directories from there, by links between those pages.
func TestPagesAreListed(t *testing.T) {
	t.Parallel()
	const docs, index = "../docs/", "../docs/README.md"
	for _, name := range markdown(t) {
		listed := slices.ContainsFunc(leads(index, read(t, index)), func(l lead) bool { return l.file == name })
		if filepath.Dir(name)+"/" == docs && name != index && !strings.HasSuffix(name, chineseSuffix) && !listed {
			t.Errorf("%s does not list %s, want a link", index, name)
		}
	}
	reached := map[string]bool{index: true}
	for next := []string{index}; len(next) > 0; next = next[1:] {
		for _, l := range leads(next[0], read(t, next[0])) {
			if strings.HasPrefix(l.file, docs) && filepath.Ext(l.file) == ".md" && !reached[l.file] {
				if _, err := os.Stat(l.file); err == nil { // TestLinksLeadSomewhere reports the others
					reached[l.file] = true
					next = append(next, l.file)
				}
			}
		}
	}
	for _, name := range markdown(t) {
		if strings.HasPrefix(name, docs) && !reached[name] {
			t.Errorf("no way leads from %s to %s, want a link", index, name)
		}
	}
}

func TestLinksAreFound(t *testing.T) {
	t.Parallel()
	const text = "# A [b](x.md)'s `c`\n[one](two.md#three) `[no](no.md)` [web](https://a.b/c)\n- a\n  ```sh\n  [no](no.md)\n  ```\n" +
		"[here](#d) <img src=\"e.svg\"> ![f](../g.png \"title\")\n## A b's c\n"
	if got, want := fmt.Sprint(leads("../docs/h.md", text)), "[../docs/x.md ../docs/two.md#three ../docs/h.md#d ../g.png ../docs/e.svg]"; got != want {
		t.Errorf("got the links %s, want %s", got, want)
	}
	if got := anchors(text); !slices.Equal(got, []string{"a-bs-c", "a-bs-c-1"}) {
		t.Errorf("got the anchors %q, want a-bs-c and a-bs-c-1", got)
	}
}

// markdown is every Markdown file of the repository, as a path from here.
func markdown(t *testing.T) (pages []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".." && d.Name() != ".github":
			return fs.SkipDir // such as .git
		case filepath.Ext(path) == ".md":
			pages = append(pages, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// lead is where a link leads: a file, as a path from here, and a heading in it.
type lead struct{ file, anchor string }

func (l lead) String() string {
	if l.anchor == "" {
		return l.file
	}
	return l.file + "#" + l.anchor
}

var (
	fences     = regexp.MustCompile("(?m)^[ \t]*```")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	anyLink    = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	sources    = regexp.MustCompile(`\s(?:src|srcset|href)="([^"]+)"`)
	elsewhere  = regexp.MustCompile(`^(?:[a-z]+:|//)`)
	headings   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// leads is where the links and pictures of a page lead to, but for other sites.
func leads(name, text string) (all []lead) {
	text = inlineCode.ReplaceAllString(prose(text), "")
	for _, m := range append(anyLink.FindAllStringSubmatch(text, -1), sources.FindAllStringSubmatch(text, -1)...) {
		if elsewhere.MatchString(m[1]) {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		if file == "" {
			file = filepath.Base(name)
		}
		all = append(all, lead{filepath.Join(filepath.Dir(name), file), anchor})
	}
	return all
}

// anchors are the names that the headings of a page go by in links, in their order.
func anchors(text string) (all []string) {
	seen := map[string]int{}
	for _, m := range headings.FindAllStringSubmatch(prose(text), -1) {
		name := anchor(linkText.ReplaceAllString(m[1], "$1"))
		seen[name]++
		if again := seen[name] - 1; again > 0 {
			name = fmt.Sprintf("%s-%d", name, again)
		}
		all = append(all, name)
	}
	return all
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
