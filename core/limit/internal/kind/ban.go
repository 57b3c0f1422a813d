package kind

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Ban says when a subject is banned because it was denied too often, and for how long. Times
// are in milliseconds. If After is 0, denials do not count, and a ban is only ever
// prolonged: it is a hold.
type Ban struct {
	Tail                       string // the end of a Redis key
	After, Within, First, Most int64
}

// Hold is that of every limiter that may put a subject on hold, whatever its policies are. No
// policy has a tail like this.
var Hold = &Ban{Tail: "held"}

// Counts reports whether denials begin a ban.
func (b *Ban) Counts() bool { return b.After > 0 }

// Bar is what may deny everything to a subject for a while: the ban of a rule, or a hold.
type Bar struct {
	*Ban

	Rule   int // its index; a hold is of the first rule
	Shadow bool
}

// Left returns where a reading of the rule has how many milliseconds the bar still lasts.
func (b *Bar) Left(of []Reading) *int64 {
	if b.Counts() {
		return &of[b.Rule].Ban
	}
	return &of[b.Rule].Hold
}

// Record returns where a cell of the rule has the record of the bar.
func (b *Bar) Record(of []*Cell) **Record {
	if b.Counts() {
		return &of[b.Rule].Ban
	}
	return &of[b.Rule].Hold
}

// NewBan returns a ban, or an error for each fault.
func NewBan(after int64, within, first, longest time.Duration) (*Ban, error) {
	var fault error
	if longest == 0 {
		longest = first
	} else if longest < first || longest%time.Millisecond != 0 {
		fault = fmt.Errorf("Ban.Max is %v: it must be a whole number of milliseconds and at least For (%v), or 0 for no longer bans", longest, first)
	}
	if err := errors.Join(
		checkPositive("Ban.After", after),
		checkWhole("Ban.Within", within, time.Millisecond, "milliseconds"),
		checkWhole("Ban.For", first, time.Millisecond, "milliseconds"),
		fault,
	); err != nil {
		return nil, err
	}
	if !Fits(after, 2) {
		return nil, inexact("Ban.After", "use an After below 2^52")
	}
	return &Ban{After: after, Within: within.Milliseconds(), First: first.Milliseconds(), Most: longest.Milliseconds()}, nil
}

// MostBan is the longest ban; a time.Duration can hold no more.
const MostBan = int64(math.MaxInt64 / time.Millisecond)

// IsBan reports whether a ban may last for that many milliseconds.
func IsBan(left int64) bool { return left >= 0 && left <= MostBan }

// Record is what is stored of a subject under a ban, in milliseconds. The zero Record is
// that of a subject which was never denied.
type Record struct {
	Last, Length  int64 // when the last ban ends, and how long it was
	from, denials int64 // when the counted denials began, and how many there are

	// These say what the process knows of the ban; Redis does not store them.
	Told  bool  // Redis has this ban too, or had it
	Since int64 // when that was known, in microseconds
}

// Banned returns the record of a ban that lasts from now on.
func Banned(now, length int64) Record { return Record{Last: now + length, Length: length} }

// Begin returns the record of a ban that an operator begins, or of a hold. rec is what is
// known before, or nil.
func (b *Ban) Begin(rec *Record, now, length int64) (begun Record, changed bool) {
	if rec != nil && !b.Counts() && rec.Left(now) > length {
		return *rec, false
	}
	return Banned(now, length), true
}

// Left returns how long the ban still lasts.
func (rec *Record) Left(now int64) int64 { return max(min(rec.Last-now, rec.Length), 0) }

// count counts a denial. If a ban begins with it, it returns how long the ban lasts.
func (b *Ban) count(rec *Record, now int64) (left int64) {
	if rec.denials == 0 || now-rec.from >= b.Within {
		rec.from, rec.denials = now, 0
	}
	if now-rec.Last >= b.Most {
		rec.Last, rec.Length = 0, 0
	}
	if rec.denials++; rec.denials < b.After {
		return 0
	}
	left = b.First
	if rec.Length > 0 {
		left = min(2*rec.Length, b.Most)
	}
	*rec = Banned(now, left)
	return left
}

// bar changes the figures to those of a banned subject, if the reading has a ban or a hold.
func (r *Reading) bar(f *Figures) {
	left := time.Duration(max(r.Ban, r.Hold)) * time.Millisecond
	if left == 0 {
		return
	}
	f.Banned, f.OnHold, f.Allowed = r.Ban > 0, r.Hold > 0, false
	if f.Remaining > 0 {
		f.NextAfter = 0
	}
	f.Remaining = 0
	f.RetryAfter, f.NextAfter, f.ResetAfter = max(f.RetryAfter, left), max(f.NextAfter, left), max(f.ResetAfter, left)
}
