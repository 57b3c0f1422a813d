package nethttp

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// Told returns for how long a partner wants no requests, as an answer says by the standard
// fields:
//
//   - Retry-After of a 429, in seconds or as a date (RFC 9110 section 10.2.3). It goes
//     before the other field.
//   - RateLimit of any answer, with r=0: the longest t of its items
//     (draft-ietf-httpapi-ratelimit-headers-11). Items with a partition key (pk) do not
//     count: the partner may mean somebody else by it.
//
// A date counts from the Date of the answer, if it has one: so a wrong clock here lengthens
// nothing. Malformed fields are ignored. Told returns 0 if the answer does not say, or says 0,
// or names a moment that is over.
//
// A 503 does not count, because it may speak for one server of the partner. If it speaks
// for all, use [ToldAlsoBy].
func Told(a *http.Response) time.Duration {
	return told(a, http.StatusTooManyRequests)
}

// ToldAlsoBy is [Told], and Retry-After also counts in answers with these statuses, such as
// 503.
func ToldAlsoBy(statuses ...int) func(*http.Response) time.Duration {
	statuses = append([]int{http.StatusTooManyRequests}, statuses...)
	return func(a *http.Response) time.Duration { return told(a, statuses...) }
}

// ToldByReset is [ToldAlsoBy] for partners that send X-RateLimit-Remaining and
// X-RateLimit-Reset. If nothing is left, Reset says until when: as a number of seconds, as a
// Unix time in seconds or milliseconds, or as a time of ISO 8601. A number is a Unix time from
// 100,000,000 on. The standard fields go before these.
func ToldByReset(statuses ...int) func(*http.Response) time.Duration {
	statuses = append([]int{http.StatusTooManyRequests}, statuses...)
	return func(a *http.Response) time.Duration {
		if d := told(a, statuses...); d > 0 {
			return d
		}
		left, err := strconv.ParseFloat(only(a.Header, "X-Ratelimit-Remaining"), 64)
		if err != nil || !(left <= 0) { // also a NaN
			return 0
		}
		return reset(a, only(a.Header, "X-Ratelimit-Reset"))
	}
}

// reset reads an X-RateLimit-Reset.
func reset(a *http.Response, field string) time.Duration {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(layout, field); err == nil {
			return until(a, at)
		}
	}
	n, err := strconv.ParseFloat(field, 64)
	switch {
	case err != nil || !(n > 0): // also a NaN
		return 0
	case n < 1e8:
		return seconds(n)
	case n < 1e11:
		return until(a, time.Unix(int64(n), 0))
	case n < 1e14:
		return until(a, time.UnixMilli(int64(n)))
	}
	return 0
}

func told(a *http.Response, statuses ...int) time.Duration {
	for _, status := range statuses {
		if a.StatusCode == status {
			if d := retryAfter(a); d > 0 {
				return d
			}
		}
	}
	list, err := httpsfv.UnmarshalList(a.Header.Values("Ratelimit"))
	if err != nil {
		return 0
	}
	longest := int64(0)
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			continue
		}
		r, _ := item.Params.Get("r")
		t, _ := item.Params.Get("t")
		_, partition := item.Params.Get("pk")
		if wait, ok := t.(int64); ok && r == int64(0) && !partition {
			longest = max(longest, wait)
		}
	}
	return seconds(float64(longest))
}

func retryAfter(a *http.Response) time.Duration {
	field := only(a.Header, "Retry-After")
	if n, err := strconv.ParseUint(field, 10, 64); err == nil {
		return seconds(float64(n))
	}
	if at, err := http.ParseTime(field); err == nil {
		return until(a, at)
	}
	return 0
}

// only returns the line of a field, if there is one alone.
func only(h http.Header, name string) string {
	if lines := h[name]; len(lines) == 1 {
		return strings.TrimSpace(lines[0])
	}
	return ""
}

// until returns how long it is until then, by the clock of the partner if it tells the time.
func until(a *http.Response, at time.Time) time.Duration {
	now, err := http.ParseTime(only(a.Header, "Date"))
	if err != nil {
		now = time.Now()
	}
	return max(at.Sub(now), 0)
}

// seconds returns a duration of n seconds, or the longest there is.
func seconds(n float64) time.Duration {
	if d := n * float64(time.Second); d < math.MaxInt64 {
		return time.Duration(d)
	}
	return math.MaxInt64
}
