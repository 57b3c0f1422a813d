package kind

import (
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// The windows of a calendar begin where its clocks say, also where they are set.
func TestPeriodsBeginWhereTheClocksSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, zone string
		every      Period
		at         string    // in UTC
		starts     [4]string // in UTC
	}{
		{"an hour", "UTC", Hour, "2026-11-25T08:59:59Z", [4]string{"2026-11-25T07:00:00Z", "2026-11-25T08:00:00Z", "2026-11-25T09:00:00Z", "2026-11-25T10:00:00Z"}},
		{"at its start", "UTC", Hour, "2026-11-25T08:00:00Z", [4]string{"2026-11-25T07:00:00Z", "2026-11-25T08:00:00Z", "2026-11-25T09:00:00Z", "2026-11-25T10:00:00Z"}},
		{"an hour that begins at the half", "Asia/Kolkata", Hour, "2026-11-25T08:00:00Z", [4]string{"2026-11-25T06:30:00Z", "2026-11-25T07:30:00Z", "2026-11-25T08:30:00Z", "2026-11-25T09:30:00Z"}},
		{"an hour that comes twice", "Europe/Berlin", Hour, "2026-10-25T01:30:00Z", [4]string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z"}},
		{"an hour that is left out", "Europe/Berlin", Hour, "2026-03-29T00:30:00Z", [4]string{"2026-03-28T23:00:00Z", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		{"clocks set back by half an hour", "Australia/Lord_Howe", Hour, "2026-04-04T15:10:00Z", [4]string{"2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z", "2026-04-04T16:30:00Z"}},
		{"clocks set forward to a full hour", "Asia/Pyongyang", Hour, "2018-05-04T14:40:00Z", [4]string{"2018-05-04T13:30:00Z", "2018-05-04T14:30:00Z", "2018-05-04T15:00:00Z", "2018-05-04T16:00:00Z"}},
		{"a day", "Asia/Shanghai", Day, "2026-11-25T16:00:00Z", [4]string{"2026-11-24T16:00:00Z", "2026-11-25T16:00:00Z", "2026-11-26T16:00:00Z", "2026-11-27T16:00:00Z"}},
		{"a day of 23 hours", "Europe/Berlin", Day, "2026-03-29T12:00:00Z", [4]string{"2026-03-27T23:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z"}},
		{"a day of 25 hours", "America/New_York", Day, "2026-11-01T12:00:00Z", [4]string{"2026-10-31T04:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-11-03T05:00:00Z"}},
		{"midnight is left out", "Africa/Cairo", Day, "2026-04-24T12:00:00Z", [4]string{"2026-04-22T22:00:00Z", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z", "2026-04-25T21:00:00Z"}},
		{"midnight comes twice", "America/Havana", Day, "2026-11-01T04:30:00Z", [4]string{"2026-10-31T04:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "2026-11-03T05:00:00Z"}},
		{"a day is left out", "Pacific/Apia", Day, "2011-12-30T09:59:59Z", [4]string{"2011-12-28T10:00:00Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"}},
		{"29 February", "UTC", Day, "2028-02-29T23:59:59Z", [4]string{"2028-02-28T00:00:00Z", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z", "2028-03-02T00:00:00Z"}},
		{"a week from a Sunday", "UTC", Week, "2026-11-29T23:00:00Z", [4]string{"2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"}},
		{"a week from a Monday", "UTC", Week, "2026-11-30T00:00:00Z", [4]string{"2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z", "2026-12-14T00:00:00Z"}},
		{"a month from its last day", "UTC", Month, "2026-01-31T23:59:59Z", [4]string{"2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"}},
		{"a February of 29 days", "Asia/Tokyo", Month, "2028-02-29T14:00:00Z", [4]string{"2027-12-31T15:00:00Z", "2028-01-31T15:00:00Z", "2028-02-29T15:00:00Z", "2028-03-31T15:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at, err := time.Parse(time.RFC3339, c.at)
			if err != nil {
				t.Fatal(err)
			}
			for i, start := range (civil{c.every, zone(t, c.zone)}).around(at) {
				if got := start.UTC().Format(time.RFC3339); got != c.starts[i] {
					t.Errorf("start %d: got %s, want %s", i, got, c.starts[i])
				}
			}
		})
	}
}

// Whatever the place and the time, each start is the next of the one before, the time is in
// the second window, and the clocks show the start of a period there.
func TestPeriodsFollowEachOther(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Asia/Shanghai", "Europe/Berlin", "America/New_York", "Africa/Cairo", "America/Havana", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "America/St_Johns"}
	rng := redistest.Rand(t)
	for range redistest.Ops(20_000) {
		every := Period(1 + rng.IntN(4))
		c := civil{every, zone(t, zones[rng.IntN(len(zones))])}
		at := time.Unix(rng.Int64N(2_500_000_000-500_000_000)+500_000_000, rng.Int64N(1e9))
		starts := c.around(at)
		if starts[1].After(at) || !starts[2].After(at) {
			t.Fatalf("%v at %v: got the window from %v to %v, want one that contains the time", c, at, starts[1], starts[2])
		}
		for i, start := range starts {
			if i > 0 && !start.Equal(c.next(starts[i-1])) {
				t.Fatalf("%v at %v: start %d: got %v, want %v, the next after the one before", c, at, i, start, c.next(starts[i-1]))
			}
			before, local := start.Add(-time.Second).In(c.in), start.In(c.in)
			if every == Hour {
				continue // the clocks may be set to any minute
			}
			if before.Format(time.DateOnly) == local.Format(time.DateOnly) {
				t.Fatalf("%v at %v: start %d: got %v, which is in the middle of a day, want the beginning of a day", c, at, i, local)
			}
			if every == Week && local.Weekday() != time.Monday || every == Month && local.Day() != 1 {
				t.Fatalf("%v at %v: start %d: got %v, want a Monday, or the first day of a month", c, at, i, local)
			}
		}
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	in, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return in
}
