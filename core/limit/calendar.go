package limit

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// CalendarWindow admits Limit permits in each hour, day, week or month of a place: for
// example 100 a day in Shanghai, or 10,000 a month in UTC. Across the end of a window, up
// to twice the Limit can be admitted. It stores one key for each subject.
//
// Limit and Every are required. A zero MaxDebt means no debt.
//
// A day begins at its first instant. That is not midnight if the clocks skip midnight on
// that day. A week begins on Monday. An hour that the clocks show twice is two windows.
// If the clocks are changed in a day or a week, that window is shorter or longer.
// RetryAfter and ResetAfter reach exactly to the end of the window. The Window of a
// [State] is the length of the current window. For a month it is 0, because the next
// month has another length.
//
// The clock of Redis decides which window it is. The process sends the boundaries of
// three windows, by its own clock, and Redis picks one. If the clocks differ by more than
// a window, the decision takes a second round trip within the same Budget, and the
// process then knows the difference. Every process needs the same time zone data: a
// process with other rules for a place ends windows at another time. A limiter of [NewLocal],
// or one in an outage, goes by the clock of the process as it was when the limiter was made: it
// does not follow a clock that is set later.
type CalendarWindow struct {
	Name  string
	Limit int64
	Every Period
	// Location is an IANA time zone, as time.LoadLocation returns it; nil means UTC.
	// time.Local and a time.FixedZone are refused, because each process must find the
	// same zone by its name. If the machine has no zone data, as in an empty container
	// image, import time/tzdata.
	Location *time.Location
	MaxDebt  int64 // how far settled costs may exceed the Limit: see Decision.Settle
	Unit     string
}

// Period is a unit of the calendar, by the clocks of a place. The zero Period is not
// usable.
type Period int

// The periods of a [CalendarWindow]. A Week begins on Monday.
const (
	Hour  = Period(kind.Hour)
	Day   = Period(kind.Day)
	Week  = Period(kind.Week)
	Month = Period(kind.Month)
)

var periods = map[Period]string{Hour: "hour", Day: "day", Week: "week", Month: "month"}

// periodOf returns the period with that word, or 0.
func periodOf(word string) (p Period) {
	for period, of := range periods {
		if of == word {
			p = period
		}
	}
	return p
}

// PolicyName returns Name, or a name made of the numbers and the place if it is empty.
func (p CalendarWindow) PolicyName() string { return nameOr(p.Name, p.signature()) }

func (p CalendarWindow) quotaUnit() string { return p.Unit }

func (p CalendarWindow) prepay(Prepaid) (Policy, error) { return p, noDebt(p.MaxDebt) }

func (p CalendarWindow) compile(keeps bool) (*kind.Rule, error) {
	in, fault := p.location()
	if periods[p.Every] == "" {
		fault = errors.Join(fault, fmt.Errorf("Every is %d: use Hour, Day, Week or Month", p.Every))
	}
	by, err := kind.NewCalendar(p.Limit, kind.Period(p.Every), in, p.MaxDebt)
	return ruleOf(p, keeps, by, errors.Join(err, fault))
}

// location loads the zone by its name, because the name is part of the key and every
// process must find the same zone.
func (p CalendarWindow) location() (*time.Location, error) {
	const remedy = `use time.LoadLocation("Area/City"), or nil for UTC`
	name := p.zone()
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("Location is %q, which is another zone on another machine: %s", name, remedy)
	}
	in, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("Location is %q: %w: %s; where the machine has no zones, import time/tzdata", name, err, remedy)
	}
	now := time.Now()
	for month := -12; p.Location != nil && month <= 12; month++ {
		t := now.AddDate(0, month, 0)
		_, given := t.In(p.Location).Zone()
		if _, found := t.In(in).Zone(); given != found {
			return nil, fmt.Errorf("Location is %q, and not the IANA zone of that name: %s", name, remedy)
		}
	}
	return in, nil
}

func (p CalendarWindow) zone() string {
	if p.Location == nil {
		return "UTC"
	}
	return p.Location.String()
}

func (p CalendarWindow) signature() string {
	return fmt.Sprintf("calendar-%d-%s", p.Limit, p.place()) + debt(p.MaxDebt)
}

func (p CalendarWindow) form() (name, form string) { return p.Name, "calendar-" + p.place() }

// place returns the part of a signature that does not depend on the Limit.
func (p CalendarWindow) place() string {
	return periods[p.Every] + "-" + strings.NewReplacer("/", ".", "+", "_").Replace(p.zone())
}

// zoneOfKey returns the zone that place wrote into a key, or nil. An underscore stands
// for itself or, as in Etc/GMT+5, for a plus sign.
func zoneOfKey(text string) *time.Location {
	text = strings.ReplaceAll(text, ".", "/")
	for _, name := range []string{text, strings.ReplaceAll(text, "_", "+")} {
		if in, err := time.LoadLocation(name); name != "" && err == nil {
			return in
		}
	}
	return nil
}
