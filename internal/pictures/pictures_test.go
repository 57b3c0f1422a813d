package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neap-go/neap/internal/svg/svgtest"
)

const root = "../.."

var once = sync.OnceValues(draw)

func drawn(t *testing.T) map[string]string {
	t.Helper()
	all, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPicturesAreCommitted: docs/pictures has what make pictures draws today.
func TestPicturesAreCommitted(t *testing.T) {
	t.Parallel()
	all := drawn(t)
	for name, picture := range all {
		there, err := os.ReadFile(filepath.Join(root, home, name))
		if err != nil || string(there) != picture {
			t.Errorf("%s is not what is drawn (%v): run make pictures, and look at it", name, err)
		}
	}
	files, err := os.ReadDir(filepath.Join(root, home))
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"README.md", "observed.svg"} // the latter is of examples/observed
	for _, f := range files {
		if all[f.Name()] == "" && !slices.Contains(others, f.Name()) && filepath.Ext(f.Name()) != ".png" { // those of console/browsertest
			t.Errorf("no picture is drawn as %s", f.Name())
		}
	}
}

// TestEachDrawingIsTheSame, since a committed file is compared with it.
func TestEachDrawingIsTheSame(t *testing.T) {
	t.Parallel()
	again, err := draw()
	if err != nil || !maps.Equal(drawn(t), again) {
		t.Errorf("two drawings differ: %v", err)
	}
}

func TestPicturesAreLegible(t *testing.T) {
	t.Parallel()
	for name, picture := range drawn(t) {
		svgtest.Legible(t, name, picture)
	}
}

// TestTheTrafficTellsThemApart: what the pages say of the limits can be seen.
func TestTheTrafficTellsThemApart(t *testing.T) {
	t.Parallel()
	most := map[string]int{}
	for _, l := range limits {
		c, err := run(l.policy)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.admitted) != len(arrivals) || !slices.IsSorted(arrivals) {
			t.Fatalf("%s: %d of %d were decided", l.name, len(c.admitted), len(arrivals))
		}
		_, most[l.name] = c.busiest()
	}
	if most["Sliding log"] != permits || most["Fixed window"] != 2*permits-1 ||
		most["Sliding window of two counters"] >= most["Fixed window"] || most["Token bucket"] > 2*permits {
		t.Errorf("within a second: %v", most)
	}
	want := fmt.Sprint([]int{
		len(arrivals), permits, most["Fixed window"], most["Sliding window of two counters"], most["Sliding log"], most["Token bucket"],
	})
	for _, page := range []string{"README.md", "README.zh-CN.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		shown := regexp.MustCompile(`!\[([^\]]*)\]\(docs/pictures/limits\.svg\)`).FindSubmatch(text)
		if shown == nil {
			t.Fatalf("%s does not show them", page)
		}
		if got := fmt.Sprintf("%s", regexp.MustCompile(`\d+`).FindAll(shown[1], -1)); got != want {
			t.Errorf("%s says %s, not %s", page, got, want)
		}
	}
	for says, name := range map[string]string{
		"pictures/README.md:4 requests before it and 5 after it make %d within": "Fixed window",
		"pictures/README.md: %d within a second here, and some refused":         "Sliding window of two counters",
		"pictures/README.md:never more than %d within":                          "Sliding log",
		"pictures/README.md:its rate holds: %d within":                          "Token bucket",
		"guide/04-fixed-window.md:lets %d of them through within one second":    "Fixed window",
		"guide/05-sliding-window.md:up to %d within one second":                 "Sliding window of two counters",
		"guide/05-sliding-window.md:never more than %d within":                  "Sliding log",
	} {
		page, says, _ := strings.Cut(says, ":")
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		if says = fmt.Sprintf(says, most[name]); !strings.Contains(string(text), says) {
			t.Errorf("%s does not say %q", page, says)
		}
	}
	v, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	if v.most != slots || v.let() == len(arrivals) {
		t.Errorf("%d in flight, and %d of %d let through", v.most, v.let(), len(arrivals))
	}
}

var image = regexp.MustCompile(`!\[([^\]]*)\]\(([^)]+\.svg)\)`)

// TestPicturesAreShown: each stands in a page, with a text in its place, and
// each that a page shows is there.
func TestPicturesAreShown(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range image.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(m[2], "https://") { // a badge
				continue
			}
			file := filepath.Join(filepath.Dir(page), m[2])
			if _, err := os.Stat(file); err != nil || len(m[1]) < 10 {
				t.Errorf("%s shows %s as %q: %v", page, m[2], m[1], err)
			}
			shown[file] = true
		}
	}
	for name := range drawn(t) {
		if !shown[filepath.Join(root, home, name)] {
			t.Errorf("no page shows %s", name)
		}
	}
}
