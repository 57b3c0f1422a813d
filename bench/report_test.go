package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// flat are results in which every figure of every limiter is the same, but that the
// floor is quicker.
func flat() *results {
	r := &results{
		plan:        plan{rounds: 5, slice: time.Millisecond, tries: 3, keys: []int{1, 1000}, goroutines: []int{1, 256}},
		contestants: slices.Concat(floors(), neaps(), peers(), tutorials()),
		facts:       map[string]facts{}, measured: map[cell]map[string][]figures{},
	}
	for _, keys := range r.plan.keys {
		for _, at := range r.plan.cells(keys, admitted, denied) {
			for _, c := range r.contestants {
				if at.goroutines >= c.minGoroutines && (at.way == admitted || !c.refills) {
					r.set(at, c.name, 0.8, 0.8, 0.8, 0.8, 0.8)
				}
			}
			r.set(at, floorName, 1, 1, 1, 1, 1)
		}
	}
	for _, c := range r.contestants {
		if c.kind != floor && c.variantOf == "" {
			r.facts[c.name] = facts{keys: 1, bytes: 100, limiter: limiterFacts{most: 1000}}
		}
	}
	return r
}

// set has a contestant call so often in each round, in floors.
func (r *results) set(at cell, name string, floors ...float64) {
	if r.measured[at] != nil {
		delete(r.measured[at], name)
	}
	for _, n := range floors {
		r.add(at, map[string]figures{name: {rate: 1000 * n, commandCPU: 2}})
	}
}

// text is the page of a report.
func text(t *testing.T, describe func(*results) report, r *results) string {
	t.Helper()
	files, err := describe(r).files("page", r)
	if err != nil {
		t.Fatal(err)
	}
	page := files["page"]
	if strings.Contains(page, "NaN") || strings.Contains(page, "%!") {
		t.Errorf("a figure is no number:\n%s", page)
	}
	return page
}

// has says which lines of a page, told by how they begin, lack what they must have.
func has(t *testing.T, page string, lines map[string]string) {
	t.Helper()
	for begins, want := range lines {
		if got := line(page, begins); !strings.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
}

func line(page, begins string) string {
	for one := range strings.Lines(page) {
		if strings.HasPrefix(one, begins) {
			return one
		}
	}
	return ""
}

func TestTheReportSaysWhoWins(t *testing.T) {
	t.Parallel()
	r := flat()
	page := text(t, limitsReport, r)
	has(t, page, map[string]string{"- **ulule/limiter**": "ahead in 0, behind in 0"})
	if strings.Contains(page, "ahead of neap") {
		t.Errorf("of equals one is ahead:\n%s", page)
	}
	// The first is even although its median is higher: its rounds vary.
	r.set(cell{admitted, 1, 1, false}, "ulule/limiter", 0.1, 0.7, 0.9, 3)
	r.set(cell{admitted, 1000, 256, false}, "ulule/limiter", 0.9, 0.95, 0.95, 0.9)
	r.set(cell{admitted, 1000, 256, false}, "httprate", 0.1, 0.1)
	r.facts["throttled"] = facts{bytes: 72, keys: 1}
	page = text(t, limitsReport, r)
	has(t, page, map[string]string{
		// 6 libraries with 8 each and one with 4; 4 tutorials.
		"| decisions a second |":  "| 8 | 1 | 1 | 50 | 0 | 0 | 32 |",
		"| memory of a subject |": "| 1 | 0 | 1 | 5 | 0 | 0 | 4 |",
		"| ulule/limiter | decisions a second, 1,000 keys, 256 goroutines, admitted |": "| 0.925 | 0.8 | floors |",
		"| throttled | memory of a subject |":                                          "| 72 | 100 | bytes |",
		"A peer that takes part in everything":                                         "has 15 figures",
		"- **httprate** beside neap sliding window":                                    "behind in 1",
	})
	if rows := strings.Count(page, "| ulule/limiter | decisions"); rows != 1 {
		t.Errorf("ulule/limiter is said to be ahead in %d", rows)
	}
}

func TestTheReportSaysWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	r := flat()
	r.facts[bucketName] = facts{bytes: 129, keys: 1}
	r.measured[cell{admitted, 1, 256, false}]["throttled"] = []figures{{failedShare: 0.5}}
	r.measured[cell{denied, 1, 1, false}][floorName][2][rate] = 4000
	has(t, text(t, limitsReport, r), map[string]string{
		"- " + bucketName + ":":   "129 bytes a key, target at most 128: **not met**",
		"- neap fixed window:":    ": met",
		"- " + pipedName + ", 1,": "0.80 (0.80–0.80) floors, target at least 1.70: **not met**",
		"- Within the rounds":     "a factor of up to 4.0,",
		"- throttled, one hot":    "50.0 % of the calls failed",
	})
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for want, one := range map[string]target{
		"- a: 2, target 2: met":                    {"a", exactly(2), "%.0f", "", exact, 2},
		"- a: 3, target 2: **not met**":            {"a", exactly(3), "%.0f", "", exact, 2},
		"- a: 2 ms, target at most 2: met":         {"a", exactly(2), "%.0f", " ms", atMost, 2},
		"- a: 3 ms, target at most 2: **not met**": {"a", exactly(3), "%.0f", " ms", atMost, 2},
		"- a: 2, target at least 2: met":           {"a", exactly(2), "%.0f", "", atLeast, 2},
		"- a: 1, target at least 2: **not met**":   {"a", exactly(1), "%.0f", "", atLeast, 2},
		"- a: 1.5 (1.0–2.0) times":                 {"a", spread{1.5, 1, 2, 3}, "%.1f", " times", noTarget, 2},
	} {
		if got := one.line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestEachLimiterIsInTheReport(t *testing.T) {
	t.Parallel()
	r := flat()
	page := text(t, limitsReport, r)
	for _, c := range r.contestants {
		if strings.Count(page, "| "+c.name+" |") < 2 {
			t.Errorf("%s is not in every table", c.name)
		}
		if !strings.Contains(picture(r), ">"+c.name+"<") {
			t.Errorf("%s is not in the picture", c.name)
		}
	}
}

// A whole run, of the shortest slices: every contestant answers as it must in every
// cell, and nothing but the files is left.
func TestRun(t *testing.T) {
	t.Parallel()
	redistest.Require(t)
	dir := t.TempDir()
	p := plan{rounds: 1, slice: time.Millisecond, tries: 1, keys: []int{1, 50}, budget: time.Minute}
	if err := run(t.Context(), p, "", dir, io.Discard); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(benchmarks)+2 { // one has two pictures
		t.Errorf("it wrote %v, %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil || strings.Contains(string(text), "NaN") || strings.Contains(string(text), "%!") {
			t.Errorf("%s: %v\n%s", f.Name(), err, text)
		}
	}
	if err := run(t.Context(), plan{}, "", dir, io.Discard); err == nil {
		t.Error("a run of no rounds")
	}
}
