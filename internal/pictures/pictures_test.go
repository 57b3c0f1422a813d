package pictures

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/inflight"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

const (
	docs = "../../docs/"
	home = docs + "pictures/"

	permits = 5
	window  = time.Second
	subject = "somebody"
	slots   = 3
)

// arrivals is when the requests come: one that begins the first window, bursts
// on both sides of its end, and after a pause more than the limit for good.
var arrivals = slices.Concat(
	[]time.Duration{0},
	every(70*time.Millisecond, 620*time.Millisecond, 5),
	every(70*time.Millisecond, 1050*time.Millisecond, 6),
	every(140*time.Millisecond, 2200*time.Millisecond, 13),
)

func every(pause, from time.Duration, n int) (all []time.Duration) {
	for i := range n {
		all = append(all, from+time.Duration(i)*pause)
	}
	return all
}

// play has the requests arrive at an embedded Redis, and returns which of them were let
// through.
func play(t *testing.T, begin func(rdb *redis.Client) (decide func(i int) bool)) (admitted []bool) {
	t.Helper()
	server, rdb := redistest.Miniredis(t)
	decide := begin(rdb)
	for i, now := range arrivals {
		server.SetTime(time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC).Add(now))
		admitted = append(admitted, decide(i))
	}
	return admitted
}

// timetable is when what was let through.
func timetable(admitted []bool) string {
	at := map[bool][]string{}
	for i, yes := range admitted {
		at[yes] = append(at[yes], fmt.Sprintf("%.2f", arrivals[i].Seconds()))
	}
	return fmt.Sprintf("Let through at second %s; refused at %s.", strings.Join(at[true], ", "), strings.Join(at[false], ", "))
}

// count is how many were let through, and how many of them within a window's length at most.
func count(admitted []bool) (let, most int) {
	for i, yes := range admitted {
		if !yes {
			continue
		}
		let++
		n := 0
		for j := i; j < len(arrivals) && arrivals[j] < arrivals[i]+window; j++ {
			if admitted[j] {
				n++
			}
		}
		most = max(most, n)
	}
	return let, most
}

// TestLimitsDecideAsDrawn: the scripts decide about the requests as the pictures say, and
// so do the pages that show the pictures.
func TestLimitsDecideAsDrawn(t *testing.T) {
	t.Parallel()
	most, shown := map[string]int{}, []string{}
	for _, l := range []struct {
		file, name string
		policy     limit.Policy
	}{
		{"fixed-window.svg", "Fixed window", limit.FixedWindow{Limit: permits, Window: window}},
		{"sliding-window.svg", "Sliding window of two counters", limit.SlidingWindow{Limit: permits, Window: window}},
		{"sliding-log.svg", "Sliding log", limit.SlidingLog{Limit: permits, Window: window}},
		{"token-bucket.svg", "Token bucket", limit.TokenBucket{Rate: permits, Per: window, Burst: permits}},
	} {
		admitted := play(t, func(rdb *redis.Client) func(int) bool {
			limiter, err := limit.New(rdb, "picture", []limit.Policy{l.policy}, &limit.Options{Budget: time.Minute, Fail: store.FailClosed})
			must(t, err)
			return func(int) bool {
				d, err := limiter.Take(t.Context(), subject)
				must(t, err)
				return d.Allowed
			}
		})
		let, n := count(admitted)
		says(t, l.file, fmt.Sprintf("%d of %d requests let through, up to %d within one second. %s", let, len(arrivals), n, timetable(admitted)))
		most[l.name] = n
		shown = append(shown, fmt.Sprintf("%s: %d let through, up to %d within one second.", l.name, let, n))
	}
	says(t, "limits.svg", strings.Join(shown, " "))

	want := fmt.Sprint([]int{
		len(arrivals), permits, most["Fixed window"], most["Sliding window of two counters"], most["Sliding log"], most["Token bucket"],
	})
	for _, page := range []string{"../README.md", "../README.zh-CN.md"} {
		text := regexp.MustCompile(`!\[([^\]]*)\]\(docs/pictures/limits\.svg\)`).FindStringSubmatch(read(t, docs+page))
		if text == nil {
			t.Fatalf("%s does not show limits.svg", page)
		}
		if got := fmt.Sprint(regexp.MustCompile(`\d+`).FindAllString(text[1], -1)); got != want {
			t.Errorf("%s says %s, want %s", page, got, want)
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
		if says = fmt.Sprintf(says, most[name]); !strings.Contains(read(t, docs+page), says) {
			t.Errorf("%s does not say %q", page, says)
		}
	}
}

// TestSlotsAreGivenAsDrawn: most requests are quick, and each fourth is slow.
func TestSlotsAreGivenAsDrawn(t *testing.T) {
	t.Parallel()
	most := int64(0)
	ends := map[*inflight.Slot]time.Duration{}
	admitted := play(t, func(rdb *redis.Client) func(int) bool {
		c, err := inflight.New(rdb, "picture", slots, &inflight.Options{
			Budget: time.Minute, Fail: store.FailClosed,
			Lease: 24 * time.Hour, // no lease is renewed: that would be by another clock
		})
		must(t, err)
		return func(i int) bool {
			for slot, end := range ends {
				if end <= arrivals[i] {
					must(t, slot.Release(t.Context()))
					delete(ends, slot)
				}
			}
			slot, err := c.Try(t.Context(), subject)
			must(t, err)
			if slot.Allowed {
				if ends[slot] = arrivals[i] + 250*time.Millisecond; i%4 == 1 {
					ends[slot] = arrivals[i] + 900*time.Millisecond
				}
			}
			n, err := c.InFlight(t.Context(), subject)
			must(t, err)
			most = max(most, n)
			return slot.Allowed
		}
	})
	for slot := range ends {
		must(t, slot.Release(t.Context()))
	}
	let, _ := count(admitted)
	says(t, "concurrency.svg", fmt.Sprintf("%d of %d requests let through, never more than %d at once. %s", let, len(arrivals), most, timetable(admitted)))
}

var (
	described = regexp.MustCompile(`<desc id="desc">(.*?)</desc>`)
	image     = regexp.MustCompile(`!\[([^\]]{10,})\]\(([^)]+\.svg)\)`)
)

// words are what a picture says to a reader who cannot see it.
func words(t *testing.T, file string) string {
	t.Helper()
	m := described.FindStringSubmatch(read(t, home+file))
	if m == nil {
		t.Fatalf("%s has no description", file)
	}
	return html.UnescapeString(m[1])
}

func says(t *testing.T, file, want string) {
	t.Helper()
	if got := words(t, file); got != want {
		t.Errorf("%s says %q, want %q", file, got, want)
	}
}

// TestPicturesAreShown: each stands in a page, with a text in its place.
func TestPicturesAreShown(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	err := filepath.WalkDir(docs, func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			for _, m := range image.FindAllStringSubmatch(read(t, path), -1) {
				shown[filepath.Join(filepath.Dir(path), m[2])] = true
			}
		}
		return err
	})
	must(t, err)
	files, err := filepath.Glob(home + "*.svg")
	must(t, err)
	for _, name := range files {
		if !shown[filepath.Clean(name)] {
			t.Errorf("no page shows %s", name)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
