package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// flat are results of which every figure of every contestant is the same.
func flat() *results {
	r := &results{
		plan:        plan{rounds: 4, slice: time.Millisecond, tries: 3, keys: []int{1, 1000}, goroutines: []int{1, 256}},
		contestants: contestants(),
		facts:       map[string]facts{},
		measured:    map[cell]samples{},
	}
	one := sample{throughput: 0.8, perSecond: 1000, cpu: 2, cpuFloors: 2}
	for _, keys := range r.plan.keys {
		for _, denied := range []bool{false, true} {
			for _, at := range r.cells(keys, denied) {
				r.measured[at] = samples{}
				for _, c := range r.contestants {
					if (!c.crowd || at.goroutines >= manyCallers) && (!denied || !c.refills) {
						r.measured[at][c.name] = []sample{one, one, one, one}
					}
				}
			}
		}
	}
	for _, c := range r.contestants {
		if c.kind != floor && c.twin == "" {
			r.facts[c.name] = facts{most: 1000, keys: 1, bytes: 100}
		}
	}
	return r
}

func line(text, begins string) string {
	for one := range strings.Lines(text) {
		if strings.HasPrefix(one, begins) {
			return one
		}
	}
	return ""
}

func TestTheReportSaysWhoWins(t *testing.T) {
	t.Parallel()
	r := flat()
	if text := r.report(); strings.Contains(text, "ahead of neap") || !strings.Contains(line(text, "- **ulule/limiter**"), "ahead in 0, behind in 0") {
		t.Errorf("of equals one is ahead:\n%s", text)
	}
	// Even figures stay even though ulule's median is higher: its rounds vary.
	r.measured[cell{1, false, 1}]["ulule/limiter"] = []sample{{throughput: 0.1}, {throughput: 0.7}, {throughput: 0.9}, {throughput: 3}}
	at := cell{1000, false, 256}
	r.measured[at]["ulule/limiter"] = []sample{{throughput: 0.9}, {throughput: 0.95}, {throughput: 0.95}, {throughput: 0.9}}
	r.measured[at]["httprate"] = []sample{{throughput: 0.1}, {throughput: 0.1}}
	r.facts["throttled"] = facts{bytes: 72, keys: 1}
	text := r.report()
	for _, want := range []string{
		"| decisions a second | 1 | 1 | 50 | 0 | 0 | 32 |", // 6 libraries with 8 each and one with 4; 4 tutorials
		"| memory of a subject | 0 | 1 | 5 | 0 | 0 | 4 |",
		"| ulule/limiter | decisions a second, 1,000 keys, 256 goroutines, admitted | 0.93 | 0.8 | floors |",
		"| throttled | memory of a subject | 72 | 100 | bytes |",
	} {
		if line(text, want) == "" {
			t.Errorf("not in the report: %s", want)
		}
	}
	if want := "has 15 figures: 8 of decisions a second, 4 of Redis CPU a decision, 2 of allocations a decision, 1 of memory"; !strings.Contains(text, want) {
		t.Errorf("not in the report: %s", want)
	}
	if rows := strings.Count(text, "| ulule/limiter | decisions"); rows != 1 {
		t.Errorf("ulule/limiter is said to be ahead in %d", rows)
	}
	if got := line(text, "- **httprate**"); !strings.Contains(got, "beside neap sliding window") || !strings.Contains(got, "behind in 1") {
		t.Errorf("httprate: %s", got)
	}
	if strings.Contains(text, "NaN") {
		t.Error("a figure is no number")
	}
}

func TestTheReportSaysWhatIsNotHeld(t *testing.T) {
	t.Parallel()
	r := flat()
	r.facts[bucketName] = facts{bytes: 129, keys: 1}
	r.measured[cell{1, false, 256}]["throttled"] = []sample{{errors: 0.5}}
	r.measured[cell{1, true, 1}][floorName][2].perSecond = 4000
	text := r.report()
	for begins, want := range map[string]string{
		"- " + bucketName + ":":  "**not held**",
		"- neap fixed window:":   ": held",
		"- " + pipedName + " in": "**not held**",
		"Within the rounds":      "a factor of up to 4.0,",
		"- throttled, one hot":   "50.0 % of the calls failed",
	} {
		if got := line(text, begins); !strings.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
}

func TestAllArePutDown(t *testing.T) {
	t.Parallel()
	r := flat()
	text, drawing := r.report(), r.picture()
	for _, c := range r.contestants {
		if strings.Count(text, "| "+c.name+" |") < 2 {
			t.Errorf("%s is not in every table", c.name)
		}
		if !strings.Contains(drawing, ">"+c.name+"<") {
			t.Errorf("%s is not in the picture", c.name)
		}
	}
}

// A whole run, of the shortest slices: every contestant answers as it must in
// every cell, and nothing but the files is left.
func TestRun(t *testing.T) {
	t.Parallel()
	redistest.Require(t)
	dir := t.TempDir()
	p := plan{rounds: 1, slice: time.Millisecond, tries: 1, keys: []int{1, 50}, goroutines: []int{1, manyCallers}}
	if err := run(t.Context(), p, "", dir); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(parts)+1 { // one has a picture too
		t.Errorf("it wrote %v, %v", files, err)
	}
	for _, f := range files {
		name := f.Name()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.Contains(string(text), "NaN") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	if err := run(t.Context(), plan{}, "", dir); err == nil {
		t.Error("a run of no rounds")
	}
}
