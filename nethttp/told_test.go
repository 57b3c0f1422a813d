package nethttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/neap-go/neap/nethttp"
)

func answerOf(status int, fields ...string) *http.Response {
	a := &http.Response{StatusCode: status, Header: http.Header{}}
	for i := 0; i < len(fields); i += 2 {
		a.Header.Add(fields[i], fields[i+1])
	}
	return a
}

func TestTold(t *testing.T) {
	t.Parallel()
	const date = "Mon, 30 Nov 2026 08:00:00 GMT" // whatever the clock of this process shows
	for name, c := range map[string]struct {
		answer *http.Response
		want   time.Duration
	}{
		"nothing":                  {answerOf(200), 0},
		"a 429 without a word":     {answerOf(429), 0},
		"seconds":                  {answerOf(429, "Retry-After", "30"), 30 * time.Second},
		"no seconds":               {answerOf(429, "Retry-After", "0"), 0},
		"below 0":                  {answerOf(429, "Retry-After", "-5"), 0},
		"too many seconds":         {answerOf(429, "Retry-After", "18446744073709551615"), 1<<63 - 1},
		"more than an integer":     {answerOf(429, "Retry-After", "99999999999999999999"), 0},
		"a fraction":               {answerOf(429, "Retry-After", "1.5"), 0},
		"two lines":                {answerOf(429, "Retry-After", "5", "Retry-After", "9"), 0},
		"a date":                   {answerOf(429, "Date", date, "Retry-After", "Mon, 30 Nov 2026 08:01:00 GMT"), time.Minute},
		"a date that is over":      {answerOf(429, "Date", date, "Retry-After", "Mon, 30 Nov 2026 07:59:00 GMT"), 0},
		"an older form of date":    {answerOf(429, "Date", date, "Retry-After", "Monday, 30-Nov-26 08:01:00 GMT"), time.Minute},
		"words":                    {answerOf(429, "Retry-After", "soon"), 0},
		"Retry-After of a 503":     {answerOf(503, "Retry-After", "30"), 0},
		"Retry-After of a 301":     {answerOf(301, "Retry-After", "30"), 0},
		"RateLimit":                {answerOf(200, "RateLimit", `"day";r=0;t=60`), time.Minute},
		"RateLimit of a 429":       {answerOf(429, "RateLimit", `"day";r=0;t=60`), time.Minute},
		"Retry-After goes before":  {answerOf(429, "Retry-After", "30", "RateLimit", `"day";r=0;t=60`), 30 * time.Second},
		"the longest of several":   {answerOf(200, "RateLimit", `"a";r=0;t=6, "b";r=0;t=60`, "RateLimit", `"c";r=0;t=7`), time.Minute},
		"something left":           {answerOf(200, "RateLimit", `"day";r=1;t=60`), 0},
		"of another partition":     {answerOf(200, "RateLimit", `"day";r=0;t=60;pk=:c29tZWJvZHk=:, "all";r=0;t=2`), 2 * time.Second},
		"without t":                {answerOf(200, "RateLimit", `"day";r=0`), 0},
		"t is no integer":          {answerOf(200, "RateLimit", `"day";r=0;t=1.5`), 0},
		"without r":                {answerOf(200, "RateLimit", `"day";t=60`), 0},
		"t below 0":                {answerOf(200, "RateLimit", `"day";r=0;t=-60`), 0},
		"malformed":                {answerOf(200, "RateLimit", `"day;r=0;t=60`), 0},
		"of an older draft":        {answerOf(200, "RateLimit", "limit=10, remaining=0, reset=60"), 0},
		"a list within":            {answerOf(200, "RateLimit", `("day");r=0;t=60`), 0},
		"X fields that do not say": {answerOf(429, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60"), 0},
	} {
		if got := nethttp.Told(c.answer); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if got := nethttp.ToldByReset()(c.answer); c.want > 0 && got != c.want {
			t.Errorf("%s, by reset: got %v, want %v", name, got, c.want)
		}
	}
	also := nethttp.ToldAlsoBy(503)
	for status, want := range map[int]time.Duration{429: time.Minute, 503: time.Minute, 502: 0} {
		if got := also(answerOf(status, "Retry-After", "60")); got != want {
			t.Errorf("ToldAlsoBy(503) of a %d: got %v, want %v", status, got, want)
		}
	}
}

func TestToldByReset(t *testing.T) {
	t.Parallel()
	const date, at = "Mon, 30 Nov 2026 08:00:00 GMT", 1796025600 // the same moment
	for name, c := range map[string]struct {
		left, reset string
		want        time.Duration
	}{
		"seconds":              {"0", "60", time.Minute},
		"a fraction":           {"0.0", "1.5", 1500 * time.Millisecond},
		"less than nothing":    {"-1", "60", time.Minute},
		"Unix time":            {"0", "1796025660", time.Minute},
		"in milliseconds":      {"0", "1796025660000", time.Minute},
		"a time that is over":  {"0", "1796025540", 0},
		"ISO 8601":             {"0", "2026-11-30T08:01:00Z", time.Minute},
		"without seconds":      {"0", "2026-11-30T08:01Z", time.Minute},
		"not a number left":    {"NaN", "60", 0},
		"with a zone":          {"0", "2026-11-30T09:01:00.000+01:00", time.Minute},
		"something left":       {"1", "60", 0},
		"not how much is left": {"", "60", 0},
		"words":                {"none", "60", 0},
		"no reset":             {"0", "", 0},
		"not a number":         {"0", "NaN", 0},
		"without an end":       {"0", "inf", 0},
		"below 0":              {"0", "-60", 0},
	} {
		a := answerOf(200, "Date", date, "X-RateLimit-Remaining", c.left, "X-RateLimit-Reset", c.reset)
		if got := nethttp.ToldByReset()(a); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if moment, err := http.ParseTime(date); err != nil || moment.Unix() != at {
		t.Errorf("%s is the Unix time %d, %v, want %d", date, moment.Unix(), err, at)
	}
	if got := nethttp.ToldByReset(403)(answerOf(403, "Retry-After", "60")); got != time.Minute {
		t.Errorf("ToldByReset(403) of Retry-After: got %v, want a minute", got)
	}
	if got := nethttp.ToldByReset()(answerOf(200, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", time.Now().Add(time.Hour).Format(time.RFC3339))); got < 59*time.Minute || got > time.Hour {
		t.Errorf("without a Date: got %v, want an hour by the clock of this process", got)
	}
}
