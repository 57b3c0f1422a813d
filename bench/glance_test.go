package main

import (
	"os"
	"strings"
	"testing"

	"github.com/neap-go/neap/internal/svg/svgtest"
)

func committed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGlanceIsOfThePage: GLANCE.svg has the figures of RESULTS.md, and can be read.
func TestGlanceIsOfThePage(t *testing.T) {
	t.Parallel()
	got, err := glance(committed(t, "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	if got != committed(t, glanceFile) {
		t.Errorf("%s is not what RESULTS.md says: run make bench-peers", glanceFile)
	}
	svgtest.Legible(t, glanceFile, got)
}

// TestGlanceFollowsTheFigures: another figure is another bar, and a page without a contestant is an error.
func TestGlanceFollowsTheFigures(t *testing.T) {
	t.Parallel()
	page := committed(t, "RESULTS.md")
	was, _, _, err := readGlance(page)
	if err != nil {
		t.Fatal(err)
	}
	changed, without, found := "", "", false
	for line := range strings.Lines(page) {
		if cells := cellsOf(line); !found && cells[0] == "redis_rate" && len(cells) > 8 {
			found = true
			cells[3], line = "77.00 (1–2)", ""
			changed += "| " + strings.Join(cells[:9], " | ") + " |\n"
		} else {
			changed += line
		}
		without += line
	}
	rows, callers, keys, err := readGlance(changed)
	if err != nil || rows[0].name != "neap bucket" || rows[1].name != "redis_rate" || rows[1].hot != 77 ||
		rows[1].lone != of(was, "redis_rate").lone || callers != 256 || keys != "100,000" {
		t.Errorf("got %+v, %d callers, %s keys, %v, want redis_rate with 77 behind neap", rows, callers, keys, err)
	}
	if got := longestBar(rows); got != "The longest bar is redis_rate's with one key, and neap's with many." {
		t.Errorf("redis_rate with 77 for one key: got %q", got)
	}
	if _, err := glance(without); err == nil {
		t.Error("a page without redis_rate: got no error, want one")
	}
	if _, err := glance("# nothing"); err == nil {
		t.Error("a page without the table: got no error, want one")
	}
}
