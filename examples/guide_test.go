package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const guideList = "../docs/guide/README.md"

var (
	fence    = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```")
	chapter  = regexp.MustCompile(`\]\((\d\d-[a-z-]+\.md)\)`)
	testLine = regexp.MustCompile(`^go test \./examples/guide -run '\^?(\w+)\$?'$`)
)

// TestTheGuideIsTrue finds every block of each chapter in a file that a test
// runs, and every file of examples/guide in a chapter.
func TestTheGuideIsTrue(t *testing.T) {
	t.Parallel()
	pages := append(chapters(t), guideList)
	code, lua, files := compiled(t, "."), allLua(t), guideFiles(t)
	var all strings.Builder
	quoted := map[string]bool{}
	for _, page := range pages {
		text := read(t, page)
		all.WriteString(text)
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			block := flat(m[2])
			switch m[1] {
			case "go":
				if !strings.Contains(code, block) {
					t.Errorf("this block of %s stands in no file under examples:\n%s", page, block)
				}
			case "lua":
				if !strings.Contains(lua, block) {
					t.Errorf("this script of %s is no part of one in examples or lua:\n%s", page, block)
				}
			case "console": // TestTheGuideRuns types it
				if !strings.HasPrefix(m[2], "$ redis-cli ") {
					t.Errorf("%s has this block of console, want one that begins with redis-cli:\n%s", page, m[2])
				}
			case "sh":
				for line := range strings.Lines(m[2]) {
					name := testLine.FindStringSubmatch(strings.TrimSpace(line))
					if name == nil || !strings.Contains(code, "\nfunc "+name[1]+"(t *testing.T)") {
						t.Errorf("%s has the reader type %q, which no test does", page, line)
					}
				}
			default:
				t.Errorf("%s has a block of %q, which no test runs:\n%s", page, m[1], block)
			}
			for name, text := range files {
				quoted[name] = quoted[name] || strings.Contains(text, block)
			}
		}
	}
	for name := range files {
		named := strings.HasSuffix(name, "_test.go") && strings.Contains(all.String(), "examples/guide/"+name)
		if !quoted[name] && !named {
			t.Errorf("no chapter shows examples/guide/%s, want one that does", name)
		}
	}
}

// TestTheGuideRuns types what the chapters type into redis-cli.
func TestTheGuideRuns(t *testing.T) {
	t.Parallel()
	for _, page := range chapters(t) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			follow(t, page)
		})
	}
}

// TestTheGuideLeadsOn turns the pages in the order of the list.
func TestTheGuideLeadsOn(t *testing.T) {
	t.Parallel()
	pages := chapters(t)
	listed := chapter.FindAllStringSubmatch(read(t, guideList), -1)
	if len(listed) != len(pages) {
		t.Fatalf("%d chapters stand in the list, want the %d of the directory", len(listed), len(pages))
	}
	for i, page := range pages {
		text := read(t, page)
		if name := filepath.Base(page); listed[i][1] != name {
			t.Errorf("chapter %d is %s in the list, want %s", i+1, listed[i][1], name)
		}
		if i > 0 && !strings.Contains(text, "]("+listed[i-1][1]+")") {
			t.Errorf("%s does not lead back, want a link to %s", page, listed[i-1][1])
		}
		if i < len(pages)-1 && !strings.Contains(text, "]("+listed[i+1][1]+")") {
			t.Errorf("%s does not lead on, want a link to %s", page, listed[i+1][1])
		}
	}
}

func chapters(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../docs/guide/[0-9][0-9]-*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("got %d chapters, %v, want some", len(pages), err)
	}
	return pages
}

// guideFiles are the files of examples/guide by their names, as flat makes them.
func guideFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, kind := range []string{"*.lua", "*.go"} {
		paths, err := filepath.Glob("guide/" + kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			files[filepath.Base(path)] = flat(read(t, path))
		}
	}
	return files
}

func allLua(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, where := range []string{"*/*.lua", "../lua/*.lua"} {
		paths, err := filepath.Glob(where)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			all.WriteString(flat(read(t, path)))
		}
	}
	return all.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
