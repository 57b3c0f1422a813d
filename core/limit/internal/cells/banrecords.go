package cells

import (
	"slices"
	"strings"
	"time"

	"github.com/neap-go/neap/core/limit/internal/kind"
)

// A process knows of bans that Redis has reported to it, that Limiter.Ban made in it, and
// that it began itself while it decided alone. These records decide only without Redis.
//
// A reading of Redis replaces what Redis reported before, so a ban that another process
// has lifted or changed is known as soon as Redis has told of it. A ban that Redis may
// not have stays until it ends or is lifted here.

// tell notes a reading of Redis: how many milliseconds the ban still lasts, or 0 if there
// is none. It was asked for and arrived at these times in microseconds. A reading that
// was asked for before something else was known says nothing.
func tell(rec *kind.Record, left, asked, arrived int64) {
	now := arrived / 1000
	switch {
	case asked < rec.Since:
	case left > 0 && (rec.Told || now+left >= rec.Last):
		length := left
		if rec.Left(now) > 0 {
			length = max(left, rec.Length) // the next ban is twice as long as the whole one
		}
		*rec = kind.Record{Last: now + left, Length: length, Told: true, Since: arrived}
	case left == 0 && rec.Told && rec.Left(now) > 0:
		*rec = kind.Record{}
	}
}

// Note notes what Redis reported with a decision: bans, and for one of n instances what is left.
func (b *Cells) Note(set *kind.Set, of *kind.Request, n int64) {
	if set.Bans {
		b.noteBans(set, of)
	}
	if n > 0 {
		b.noteSeeds(set, of, b.now())
	}
}

func (b *Cells) noteBans(set *kind.Set, of *kind.Request) {
	banned := slices.ContainsFunc(of.Readings, func(r kind.Reading) bool { return r.Ban > 0 })
	if !banned && b.known.Load() == 0 {
		return // nothing is known that the readings could end
	}
	subject := b.space.Subject(of.Subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, r := range set.Rules {
		if r.Ban != nil {
			b.tell(stateKey{subject, r.Ban.Tail}, of.Readings[i].Ban, of.Asked)
		}
	}
}

// tell notes a reading of Redis about one ban.
func (b *Cells) tell(key stateKey, left int64, asked time.Time) {
	rec := b.bans.get(key)
	if rec == nil {
		if left == 0 {
			return
		}
		rec = new(kind.Record)
	}
	if lifted, is := b.lifts.Peek(key); is && b.at(asked) < lifted {
		return
	}
	tell(rec, left, b.at(asked), b.now())
	b.put(key, rec)
}

// put stores a record, or forgets it if there is nothing in it.
func (b *Cells) put(key stateKey, rec *kind.Record) {
	b.denials.Remove(key)
	if *rec == (kind.Record{}) {
		b.bans.remove(key)
	} else {
		b.bans.put(key, rec)
	}
	b.known.Store(int64(b.bans.len()))
}

// Ban does in Go what limit_ban.lua does: it makes a ban of duration milliseconds under each of some
// rules. With 0 it lifts them, and with -1 it only asks. It returns how long the longest ban would
// still have lasted before, as far as Redis does not know of it.
func (b *Cells) Ban(rules []*kind.Rule, subject string, duration int64) (left int64) {
	subject = b.space.Subject(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now() / 1000
	for _, r := range rules {
		key := stateKey{subject, r.Ban.Tail}
		if rec := b.bans.get(key); rec != nil && !rec.Told { // or else Redis says what is left
			left = max(left, rec.Left(now))
		}
		switch {
		case duration > 0:
			b.put(key, &kind.Record{Last: now + duration, Length: duration})
		case duration == 0:
			b.put(key, new(kind.Record))
		}
	}
	return left
}

// Answered notes what Redis did or said about bans; lefts is nil if it did not answer. A
// ban that was lifted leaves the time of that, so that no reading which was asked for
// before renews it. It has a place of its own: subjects whose bans are lifted, and those
// that had none, displace no ban.
func (b *Cells) Answered(rules []*kind.Rule, subject string, duration int64, asked time.Time, lefts []int64) {
	subject = b.space.Subject(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.now()
	for i, r := range rules {
		key := stateKey{subject, r.Ban.Tail}
		switch {
		case duration == 0:
			b.put(key, new(kind.Record))
			key.subject = strings.Clone(key.subject)
			b.lifts.Add(key, at)
		case lefts == nil: // a ban that was made holds in this process
		case duration > 0:
			b.put(key, &kind.Record{Last: at/1000 + duration, Length: duration, Told: true, Since: at})
		default:
			b.tell(key, lefts[i], asked)
		}
	}
}

// recordOf returns the record of a subject. It is new if nothing is stored, and nil if
// the rule has no ban.
func (b *Cells) recordOf(subject string, r *kind.Rule) *kind.Record {
	if r.Ban == nil {
		return nil
	}
	key := stateKey{subject, r.Ban.Tail}
	if rec := b.bans.get(key); rec != nil {
		return rec
	}
	if rec, ok := b.denials.Get(key); ok {
		return rec
	}
	return new(kind.Record)
}

// keepRecords stores the records in which a denial was counted.
func (b *Cells) keepRecords(subject string, rules []*kind.Rule, cells []*kind.Cell) {
	for i, r := range rules {
		if r.Ban != nil && *cells[i].Ban != (kind.Record{}) {
			key, rec := stateKey{subject, r.Ban.Tail}, cells[i].Ban
			switch {
			case rec.Last > 0 || b.bans.get(key) != nil:
				b.put(key, rec)
			case !b.denials.Contains(key):
				key.subject = strings.Clone(key.subject)
				b.denials.Add(key, rec)
			}
		}
	}
}

// Banned reports whether the process knows that an enforced policy bans the subject. If so, the
// request gets the readings of a subject that has taken nothing.
func (b *Cells) Banned(set *kind.Set, of *kind.Request) bool {
	if b.known.Load() == 0 || !set.Bans {
		return false
	}
	subject := b.space.Subject(of.Subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	var few [kind.Few]*kind.Cell
	cells := b.of(set, subject, few[:0])
	readings := make([]kind.Reading, len(set.Rules))
	set.Take(cells, 0, b.now(), -of.Cost, readings)
	if !set.Banned(readings) {
		return false
	}
	copy(of.Readings, readings)
	return true
}
