package main

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/examples/internal/backend"
	"github.com/neap-go/neap/examples/internal/quickstart"
	"github.com/neap-go/neap/internal/redistest"
)

const (
	firstLine = "Limits kept in "
	lastLines = "Every count is as expected. It took "
)

// TestTheDemoShowsAllFrameworks that there are, and in turn, as one page. For the
// time that it takes, one of each module stands for all.
func TestTheDemoShowsAllFrameworks(t *testing.T) {
	t.Parallel()
	var titles []string
	for _, f := range frameworks {
		titles = append(titles, f.Title)
	}
	if want := []string{"net/http", "Gin", "Echo v4", "Echo v5", "Fiber v2", "Fiber v3", "Hertz"}; !slices.Equal(titles, want) {
		t.Errorf("got the frameworks %q, want %q", titles, want)
	}
	two := app
	two.Frameworks = frameworks[3:5]
	titles = nil
	for line := range strings.Lines(assertDemo(t, two)) {
		if title, ok := strings.CutPrefix(line, "━━ "); ok {
			titles = append(titles, strings.Trim(title, " ━\n"))
		}
	}
	if want := []string{"Echo v5", "Fiber v2"}; !slices.Equal(titles, want) {
		t.Errorf("got the titles %q, want %q", titles, want)
	}
}

func TestTheDemoOfEachFramework(t *testing.T) {
	t.Parallel()
	standalone, cluster := redistest.Standalone(t), redistest.Cluster(t)
	for where, c := range map[string]struct {
		args []string
		rdb  redis.UniversalClient
	}{
		// As admin: unlike the limits, the demo looks for its keys and removes them.
		"standalone": {[]string{"-redis", standalone.AdminURL()}, standalone.Admin(t)},
		"cluster":    {[]string{"-redis", cluster.Nodes()[0].AdminURL()}, cluster.Admin(t)},
		"embedded":   {nil, nil},
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			var wg sync.WaitGroup
			for _, f := range frameworks {
				wg.Go(func() { assertDemo(t, app, slices.Concat(c.args, []string{"-framework", f.Name})...) })
			}
			wg.Wait()
			if c.rdb == nil {
				return
			}
			if left := keysWith(t, c.rdb, "neap-demo"); len(left) > 0 {
				t.Errorf("got the keys %q after the demo, want none", left)
			}
		})
	}
}

// assertDemo runs the demo, and holds its page to being one.
func assertDemo(t *testing.T, q quickstart.Quickstart, args ...string) (page string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := q.Run(t.Context(), args, &stdout, &stderr)
	page = stdout.String()
	_, last, _ := strings.Cut(page, lastLines)
	if code != 0 || stderr.Len() > 0 || !strings.HasPrefix(page, firstLine) || strings.Count(page, firstLine) != 1 ||
		strings.Count(page, lastLines) != 1 || strings.Count(last, "\n") != 2 {
		t.Errorf("%q: got the exit status %d, want 0, nothing on stderr, and a page with one first line and one last:\n%s%s",
			args, code, page, stderr.String())
	}
	assertPlain(t, page)
	return page
}

// assertPlain holds a page to what a narrow terminal, or a file, can show.
func assertPlain(t *testing.T, page string) {
	t.Helper()
	for line := range strings.Lines(page) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("got a line of %d columns, want 100 at most: %s", n, line)
		}
		if strings.Contains(line, "\x1b") {
			t.Errorf("got a line in colour, want none without a terminal: %q", line)
		}
	}
}

// keysWith are the keys with the text in their names, on all masters.
func keysWith(t *testing.T, rdb redis.UniversalClient, text string) []string {
	t.Helper()
	keys, err := backend.Keys(t.Context(), rdb, "*"+text+"*")
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
