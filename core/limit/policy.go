package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// Policy is one of [TokenBucket], [FixedWindow], [SlidingWindow], [SlidingLog] and
// [CalendarWindow].
//
// Name appears in the RateLimit header fields and in Redis keys. It has up to 64 letters,
// digits, dots, dashes and underscores. If it is empty, the policy's numbers make the
// name. If you change a policy's numbers, a fresh state begins, so that instances of two
// versions never misread each other's state. [KeepOnChange] keeps the state.
//
// Unit tells clients what a permit is, in the RateLimit header fields: for example
// "content-bytes" if the cost of a request is the length of its body. The same characters
// are allowed as in a name. Empty means requests. The Unit is not part of the key, so a
// change of it keeps what was counted. Every policy of a limiter has the same Unit,
// because each decision charges all of them with the same cost; [PerRequest] is the
// exception.
type Policy interface {
	// PolicyName returns the name that decisions report.
	PolicyName() string

	compile() (rule, error)
	quotaUnit() string
}

// These units are defined by draft-ietf-httpapi-ratelimit-headers-11, section 3.1.2.
const (
	UnitRequests     = "requests"
	UnitContentBytes = "content-bytes"
)

// TokenBucket admits Rate permits per Per on average, and Burst at once: at most Burst +
// Rate·t/Per in any time t. It stores one key of some 100 bytes for each subject.
//
// Rate and Per are required, and Per is at least a millisecond. A zero Burst means Rate:
// with 1,000 an hour, 1,000 may come at once, and up to 2,000 within one hour. If your
// service cannot take that many, set a smaller Burst. A zero MaxDebt means no debt.
//
// The algorithm is the generic cell rate algorithm (ITU-T I.371). It is computed in
// integers, so that 3 per second and 7 per minute never drift.
type TokenBucket struct {
	Name    string
	Rate    int64
	Per     time.Duration
	Burst   int64
	MaxDebt int64 // how far settled costs may exceed the Burst: see Decision.Settle
	Unit    string
}

// FixedWindow admits Limit permits in each Window. A window begins with its first
// admitted request. Across the end of a window, up to twice the Limit can be admitted
// within one Window. It is the cheapest policy, and stores one key for each subject.
//
// Limit and Window are required. Window is a whole number of milliseconds. A zero MaxDebt
// means no debt.
type FixedWindow struct {
	Name    string
	Limit   int64
	Window  time.Duration
	MaxDebt int64 // how far settled costs may exceed the Limit: see Decision.Settle
	Unit    string
}

// SlidingWindow admits Limit permits in a Window that slides, as far as two counters can
// tell. The previous window counts in proportion to how much of it the sliding window
// still covers, as if its permits had been spread evenly. If they were not, close to
// twice the Limit can be admitted within one Window. It stores one key for each subject.
//
// Limit and Window are required. Window is a whole number of milliseconds.
type SlidingWindow struct {
	Name   string
	Limit  int64
	Window time.Duration
	Unit   string
}

// SlidingLog never admits more than Limit permits in any Window. It stores the time of
// every permit, some 10 bytes each in Redis.
//
// Limit and Window are required. Limit is at most 100,000. Window is at least a
// millisecond and a whole number of microseconds.
type SlidingLog struct {
	Name   string
	Limit  int64
	Window time.Duration
	Unit   string
}

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
// process with other rules for a place ends windows at another time.
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

// PolicyName returns Name, or a name made of the numbers if it is empty.
func (p TokenBucket) PolicyName() string { return nameOr(p.Name, p.signature()) }

// PolicyName returns Name, or a name made of the numbers if it is empty.
func (p FixedWindow) PolicyName() string { return nameOr(p.Name, p.signature()) }

// PolicyName returns Name, or a name made of the numbers if it is empty.
func (p SlidingWindow) PolicyName() string { return nameOr(p.Name, p.signature()) }

// PolicyName returns Name, or a name made of the numbers if it is empty.
func (p SlidingLog) PolicyName() string { return nameOr(p.Name, p.signature()) }

// PolicyName returns Name, or a name made of the numbers and the place if it is empty.
func (p CalendarWindow) PolicyName() string { return nameOr(p.Name, p.signature()) }

func (p TokenBucket) quotaUnit() string    { return p.Unit }
func (p FixedWindow) quotaUnit() string    { return p.Unit }
func (p SlidingWindow) quotaUnit() string  { return p.Unit }
func (p SlidingLog) quotaUnit() string     { return p.Unit }
func (p CalendarWindow) quotaUnit() string { return p.Unit }

func (p TokenBucket) signature() string {
	return fmt.Sprintf("bucket-%d-%s-%d", p.Rate, keyspace.Span(p.Per), p.burst()) + debt(p.MaxDebt)
}

func (p FixedWindow) signature() string {
	return fmt.Sprintf("window-%d-%s", p.Limit, keyspace.Span(p.Window)) + debt(p.MaxDebt)
}

func (p SlidingWindow) signature() string {
	return fmt.Sprintf("sliding-%d-%s", p.Limit, keyspace.Span(p.Window))
}

func (p SlidingLog) signature() string {
	return fmt.Sprintf("log-%d-%s", p.Limit, keyspace.Span(p.Window))
}

func (p TokenBucket) burst() int64 {
	if p.Burst == 0 {
		return p.Rate
	}
	return p.Burst
}

// debt returns the part of a signature that MaxDebt adds. With another MaxDebt, a stored
// state would be misread.
func debt(most int64) string {
	if most == 0 {
		return ""
	}
	return fmt.Sprintf("-debt-%d", most)
}

func checkDebt(most int64) error {
	if most >= 0 {
		return nil
	}
	return fmt.Errorf("MaxDebt is %d: use a positive number, or 0 for no debt", most)
}

func nameOr(name, signature string) string {
	if name == "" {
		return signature
	}
	return name
}

func checkPositive(field string, n int64) error {
	if n > 0 {
		return nil
	}
	return fmt.Errorf("%s is %d: it must be at least 1", field, n)
}

// checkLeast refuses durations below a millisecond. This catches the number 1 read from a
// file, which Go takes for a nanosecond.
func checkLeast(field string, d time.Duration) error {
	if d >= time.Millisecond {
		return nil
	}
	return fmt.Errorf("%s is %v: it must be at least a millisecond (a bare number is nanoseconds: write 1 * time.Second)", field, d)
}

func checkWhole(field string, d, unit time.Duration, units string) error {
	if err := checkLeast(field, d); err != nil {
		return err
	}
	if d%unit != 0 {
		return fmt.Errorf("%s is %v: it must be a whole number of %s", field, d, units)
	}
	return nil
}

// exact is 2^53: up to it, Lua's numbers represent every integer.
const exact = 1 << 53

// errInexact names the fields whose numbers are too large together.
func errInexact(fields, remedy string) error {
	return fmt.Errorf("%s are together beyond exact arithmetic (2^53): %s", fields, remedy)
}

// fits reports whether the product of positive factors stays below 2^53.
func fits(factors ...int64) bool {
	left := int64(exact)
	for _, f := range factors {
		left /= f
		if left == 0 {
			return false
		}
	}
	return true
}

// compile checks the policies and their names, and reports every fault. It returns the
// enforced policies before the shadow policies.
func compile(policies []Policy) ([]rule, error) {
	if len(policies) == 0 {
		return nil, errors.New("policies is empty: give at least one Policy")
	}
	var faults []error
	rules := make([]rule, 0, len(policies))
	var shadows, all []rule
	seen := make(map[string]bool, len(policies))
	for i, p := range policies {
		if isNil(p) {
			faults = append(faults, fmt.Errorf("policies[%d] is nil: give a Policy", i))
			continue
		}
		r, err := p.compile()
		name := p.PolicyName()
		err = errors.Join(err, keyspace.CheckName("Name", name), checkUnit(p.quotaUnit()))
		if err == nil && seen[name] {
			err = fmt.Errorf("Name %q is used twice: give each policy a Name of its own", name)
		}
		seen[name] = true
		if err != nil {
			for _, fault := range faultsOf(err) {
				faults = append(faults, fmt.Errorf("policies[%d] (%T): %w", i, p, fault))
			}
			continue
		}
		r.id().quotaUnit = unitOf(p)
		if !r.id().once {
			all = append(all, r)
		}
		if !r.id().once && r.id().quotaUnit != all[0].id().quotaUnit {
			faults = append(faults, fmt.Errorf(
				"policies[%d] (%T): Unit is %q, and another policy's is %q: a limiter charges each policy with the same cost, so give all of them one Unit",
				i, p, r.id().quotaUnit, all[0].id().quotaUnit))
		}
		if r.id().shadow {
			shadows = append(shadows, r)
		} else {
			rules = append(rules, r)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return append(rules, shadows...), nil
}

// unitOf returns the unit of a policy, with "" for requests.
func unitOf(p Policy) string {
	if unit := p.quotaUnit(); unit != UnitRequests {
		return unit
	}
	return ""
}

// checkUnit allows in a unit the characters of a name. They need no escaping in a String
// of a Structured Field (RFC 9651 section 3.3.3).
func checkUnit(unit string) error {
	if unit == "" {
		return nil
	}
	return keyspace.CheckName("Unit", unit)
}

// faultsOf returns the errors that err joins, or err itself.
func faultsOf(err error) (faults []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, fault := range joined.Unwrap() {
		faults = append(faults, faultsOf(fault)...)
	}
	return faults
}
