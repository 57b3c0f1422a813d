package limit

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// Policy is one of [TokenBucket], [FixedWindow], [SlidingWindow], [SlidingLog] and
// [CalendarWindow].
//
// A policy's name stands in the RateLimit fields and in Redis keys: up to 64
// letters, digits, dots, dashes and underscores; empty means one made of the
// numbers. Changing a policy's numbers starts a fresh state, so that instances
// of two versions never misread each other; [KeepOnChange] keeps the state.
//
// A policy's Unit says what a permit is, for clients that read the RateLimit
// fields: "content-bytes", for example, where the cost of a request is the length
// of its body. It has the same characters as a name. Empty means requests. It is a
// word for clients alone: it is no part of the key, and a change of it keeps what
// was counted. Every policy of a limiter has the same Unit, since each decision
// charges all of them with the same cost. Requests in flight have a limit of their
// own, [Concurrency], whose unit is [UnitConcurrentRequests].
type Policy interface {
	// PolicyName is the name as decisions report it.
	PolicyName() string

	compile() (rule, error)
	quotaUnit() string
}

// The units that draft-ietf-httpapi-ratelimit-headers-11 section 3.1.2 defines.
const (
	UnitRequests           = "requests"
	UnitContentBytes       = "content-bytes"
	UnitConcurrentRequests = "concurrent-requests"
)

// TokenBucket admits Rate permits per Per on average and Burst at once: at
// most Burst + Rate·t/Per in any time t. It keeps one key of some 100 bytes a
// subject. Rate and Per are required, Per is at least a millisecond; a zero Burst
// means the Rate.
//
// It is the generic cell rate algorithm (ITU-T I.371) kept in integers, so
// that 3 per second and 7 per minute never drift.
type TokenBucket struct {
	Name    string
	Rate    int64
	Per     time.Duration
	Burst   int64
	MaxDebt int64 // beyond the Burst, of costs that are settled: see Decision.Settle
	Unit    string
}

// FixedWindow admits Limit permits in each Window, which begins with its first
// admitted request. Across the end of a window it can admit twice its Limit
// within one Window. It is the cheapest policy and keeps one key a subject.
// Limit and Window are required; the Window is a whole number of milliseconds.
type FixedWindow struct {
	Name    string
	Limit   int64
	Window  time.Duration
	MaxDebt int64 // beyond the Limit, of costs that are settled: see Decision.Settle
	Unit    string
}

// SlidingWindow admits Limit permits in a Window that slides, as far as two
// counters tell: the last window counts in proportion to how much of it is
// still covered, as if its permits had been spread evenly. Where they were
// not, it can admit close to twice its Limit within one Window. It keeps one
// key a subject. Limit and Window are required; the Window is a whole number
// of milliseconds.
type SlidingWindow struct {
	Name   string
	Limit  int64
	Window time.Duration
	Unit   string
}

// SlidingLog never admits more than Limit permits in any Window: it keeps the
// time of every permit, some 10 bytes each in Redis. Limit and Window are
// required; Limit is at most 100,000, the Window a millisecond or more and a
// whole number of microseconds.
type SlidingLog struct {
	Name   string
	Limit  int64
	Window time.Duration
	Unit   string
}

// CalendarWindow admits Limit permits in each hour, day, week or month of a place:
// 100 a day in Shanghai, 10,000 a month in UTC. Across the end of a window it can
// admit twice its Limit. It keeps one key a subject. Limit and Every are required.
//
// A day begins at its first instant, which is not midnight where the clocks leave
// midnight out, and a week begins on Monday. An hour that the clocks show twice is two windows. A day or a
// week in which they are set is shorter or longer. RetryAfter and ResetAfter reach to
// the end of the window exactly. The Window of its State is the length of the current
// window, and 0 for a month, since the next one has another length.
//
// The clock of Redis decides which window it is. The process tells it three of
// them, and which: if the clocks are more than a window apart, a decision takes a second
// round trip within the same Budget, and the process then knows. Every process needs the same zone data: one with
// other rules for a place ends windows at another time.
type CalendarWindow struct {
	Name  string
	Limit int64
	Every Period
	// Location is an IANA zone, as time.LoadLocation makes it; nil is UTC. time.Local
	// and a time.FixedZone are refused: each process must find the same. Where the
	// machine has no zones, as in an empty image, import time/tzdata.
	Location *time.Location
	MaxDebt  int64 // beyond the Limit, of costs that are settled: see Decision.Settle
	Unit     string
}

// PolicyName is Name, or a name made of the numbers.
func (p TokenBucket) PolicyName() string { return nameOr(p.Name, p.signature()) }

// PolicyName is Name, or a name made of the numbers.
func (p FixedWindow) PolicyName() string { return nameOr(p.Name, p.signature()) }

// PolicyName is Name, or a name made of the numbers.
func (p SlidingWindow) PolicyName() string { return nameOr(p.Name, p.signature()) }

// PolicyName is Name, or a name made of the numbers.
func (p SlidingLog) PolicyName() string { return nameOr(p.Name, p.signature()) }

// PolicyName is Name, or a name made of the numbers and the place.
func (p CalendarWindow) PolicyName() string { return nameOr(p.Name, p.signature()) }

func (p TokenBucket) quotaUnit() string    { return p.Unit }
func (p FixedWindow) quotaUnit() string    { return p.Unit }
func (p SlidingWindow) quotaUnit() string  { return p.Unit }
func (p SlidingLog) quotaUnit() string     { return p.Unit }
func (p CalendarWindow) quotaUnit() string { return p.Unit }

func (p TokenBucket) signature() string {
	return fmt.Sprintf("bucket-%d-%s-%d", p.Rate, span(p.Per), p.burst()) + debt(p.MaxDebt)
}

func (p FixedWindow) signature() string {
	return fmt.Sprintf("window-%d-%s", p.Limit, span(p.Window)) + debt(p.MaxDebt)
}

func (p SlidingWindow) signature() string {
	return fmt.Sprintf("sliding-%d-%s", p.Limit, span(p.Window))
}

func (p SlidingLog) signature() string {
	return fmt.Sprintf("log-%d-%s", p.Limit, span(p.Window))
}

func (p TokenBucket) burst() int64 {
	if p.Burst == 0 {
		return p.Rate
	}
	return p.Burst
}

// debt is its part of a signature. States with another MaxDebt would be read wrong.
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

// span writes a duration with safe characters and no zero units: 1h, 1.5us.
func span(d time.Duration) string {
	s := strings.ReplaceAll(d.String(), "µ", "u")
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func checkPositive(field string, n int64) error {
	if n > 0 {
		return nil
	}
	return fmt.Errorf("%s is %d: it must be at least 1", field, n)
}

// checkLeast refuses what is shorter than a millisecond, the number 1 read from
// a file among it: Go takes it for a nanosecond.
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

// exact is the largest integer up to which Lua's numbers have no gaps.
const exact = 1 << 53

// errInexact is joined to the fields that would have to change.
func errInexact(fields, remedy string) error {
	return fmt.Errorf("%s are together beyond exact arithmetic (2^53): %s", fields, remedy)
}

// fits says whether the product of positive factors stays below 2^53.
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

// compile checks the policies and their names, and reports every fault. The
// enforced ones come first.
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

// unitOf is the unit of a policy, where empty is requests.
func unitOf(p Policy) string {
	if unit := p.quotaUnit(); unit != UnitRequests {
		return unit
	}
	return ""
}

// checkUnit holds a unit to the characters of a name, which need no escaping in
// a String of a Structured Field (RFC 9651 section 3.3.3).
func checkUnit(unit string) error {
	if unit == "" {
		return nil
	}
	return keyspace.CheckName("Unit", unit)
}

// faultsOf are the faults that an error joins, or the error itself.
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
