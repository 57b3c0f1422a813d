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
	if len(set.Bars) > 0 {
		b.noteBans(set, of)
	}
	if n > 0 {
		b.noteSeeds(set, of, b.now())
	}
}

func (b *Cells) noteBans(set *kind.Set, of *kind.Request) {
	banned := slices.ContainsFunc(of.Readings, func(r kind.Reading) bool { return max(r.Ban, r.Hold) > 0 })
	if !banned && b.known.Load() == 0 {
		return // nothing is known that the readings could end
	}
	subject := b.space.Subject(of.Subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bar := range set.Bars {
		b.tell(stateKey{subject, bar.Tail}, *bar.Left(of.Readings), of.Asked)
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
	if key.tail == kind.Hold.Tail && rec.Left(b.now()/1000) == 0 {
		*rec = kind.Record{} // no later hold depends on it
	}
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

// Ban does in Go what limit_ban.lua does: it begins each of some bans, for duration milliseconds.
// With 0 it lifts them, and with -1 it only asks. It returns how long the longest one would still
// have lasted before, as far as Redis does not know of it.
func (b *Cells) Ban(bans []*kind.Ban, subject string, duration int64) (left int64) {
	subject = b.space.Subject(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now() / 1000
	for _, ban := range bans {
		key := stateKey{subject, ban.Tail}
		rec := b.bans.get(key)
		if rec != nil && !rec.Told { // or else Redis says what is left
			left = max(left, rec.Left(now))
		}
		switch {
		case duration > 0:
			begun, _ := ban.Begin(rec, now, duration)
			b.put(key, &begun)
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
func (b *Cells) Answered(bans []*kind.Ban, subject string, duration int64, asked time.Time, lefts []int64) {
	subject = b.space.Subject(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.now()
	for i, ban := range bans {
		key := stateKey{subject, ban.Tail}
		switch {
		case duration == 0:
			b.put(key, new(kind.Record))
			key.subject = strings.Clone(key.subject)
			b.lifts.Add(key, at)
		case lefts == nil: // a ban that was made holds in this process
		case duration > 0:
			rec, lasts := b.bans.get(key), duration
			if !ban.Counts() {
				lasts = max(duration, lefts[i])
			}
			if rec != nil && rec.Told { // Redis has said what there is
				rec = nil
			}
			if begun, changed := ban.Begin(rec, at/1000, lasts); changed {
				begun.Told, begun.Since = true, at
				b.put(key, &begun)
			}
		default:
			b.tell(key, lefts[i], asked)
		}
	}
}

// recordOf returns the record of a subject. It is new if nothing is stored.
func (b *Cells) recordOf(subject string, ban *kind.Ban) *kind.Record {
	key := stateKey{subject, ban.Tail}
	if rec := b.bans.get(key); rec != nil {
		return rec
	}
	if rec, ok := b.denials.Get(key); ok {
		return rec
	}
	return new(kind.Record)
}

// keepRecords stores the records in which a denial was counted.
func (b *Cells) keepRecords(subject string, set *kind.Set, cells []*kind.Cell) {
	for _, bar := range set.Bars {
		if rec := *bar.Record(cells); *rec != (kind.Record{}) {
			key := stateKey{subject, bar.Tail}
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

// Banned reports whether the process knows that the subject is banned under an enforced policy, or
// on hold. If so, the request gets the readings of a subject that has taken nothing.
func (b *Cells) Banned(set *kind.Set, of *kind.Request) bool {
	if b.known.Load() == 0 || len(set.Bars) == 0 {
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
