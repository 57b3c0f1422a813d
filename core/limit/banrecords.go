package limit

import (
	"slices"
	"strings"
	"time"

	"github.com/neap-go/neap/core/store"
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
func (rec *record) tell(left, asked, arrived int64) {
	now := arrived / 1000
	switch {
	case asked < rec.since:
	case left > 0 && (rec.told || now+left >= rec.last):
		length := left
		if rec.left(now) > 0 {
			length = max(left, rec.length) // the next ban is twice as long as the whole one
		}
		*rec = record{last: now + left, length: length, told: true, since: arrived}
	case left == 0 && rec.told && rec.left(now) > 0:
		*rec = record{}
	}
}

// note notes the bans that Redis has reported with a decision.
func (b *local) note(l *Limiter, g *grant) {
	if l.opts.Fail == store.FailClosed || !slices.ContainsFunc(l.rules, hasBan) {
		return
	}
	banned := slices.ContainsFunc(g.readings, func(r reading) bool { return r.ban > 0 })
	if !banned && b.known.Load() == 0 {
		return // nothing is known that the readings could end
	}
	subject := l.space.Subject(g.subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, r := range l.rules {
		if hasBan(r) {
			b.tell(localKey{subject, r.id().ban.tail}, g.readings[i].ban, g.asked)
		}
	}
}

// tell notes a reading of Redis about one ban.
func (b *local) tell(key localKey, left int64, asked time.Time) {
	rec := b.records.get(key)
	if rec == nil {
		if left == 0 {
			return
		}
		rec = new(record)
	}
	if lifted, is := b.lifts.Peek(key); is && b.at(asked) < lifted {
		return
	}
	rec.tell(left, b.at(asked), b.now())
	b.put(key, rec)
}

// put stores a record, or forgets it if there is nothing in it.
func (b *local) put(key localKey, rec *record) {
	b.denials.Remove(key)
	if *rec == (record{}) {
		b.records.remove(key)
	} else {
		b.records.put(key, rec)
	}
	b.known.Store(int64(b.records.len()))
}

// bans does in Go what limit_ban.lua does.
func (b *local) bans(l *Limiter, rules []rule, subject string, duration int64) (left int64) {
	subject = l.space.Subject(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now() / 1000
	for _, r := range rules {
		key := localKey{subject, r.id().ban.tail}
		if rec := b.records.get(key); rec != nil && !rec.told { // or else Redis says what is left
			left = max(left, rec.left(now))
		}
		switch {
		case duration > 0:
			b.put(key, &record{last: now + duration, length: duration})
		case duration == 0:
			b.put(key, new(record))
		}
	}
	return left
}

// answered notes what Redis did or said about bans; lefts is nil if it did not answer. A
// ban that was lifted leaves the time of that, so that no reading which was asked for
// before renews it. It has a place of its own: subjects whose bans are lifted, and those
// that had none, displace no ban.
func (b *local) answered(l *Limiter, rules []rule, subject string, duration int64, asked time.Time, lefts []int64) {
	subject = l.space.Subject(subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.now()
	for i, r := range rules {
		key := localKey{subject, r.id().ban.tail}
		switch {
		case duration == 0:
			b.put(key, new(record))
			key.subject = strings.Clone(key.subject)
			b.lifts.Add(key, at)
		case lefts == nil: // a ban that was made holds in this process
		case duration > 0:
			b.put(key, &record{last: at/1000 + duration, length: duration, told: true, since: at})
		default:
			b.tell(key, lefts[i], asked)
		}
	}
}

// recordOf returns the record of a subject. It is new if nothing is stored, and nil if
// the rule has no ban.
func (b *local) recordOf(subject string, r rule) *record {
	if !hasBan(r) {
		return nil
	}
	key := localKey{subject, r.id().ban.tail}
	if rec := b.records.get(key); rec != nil {
		return rec
	}
	if rec, ok := b.denials.Get(key); ok {
		return rec
	}
	return new(record)
}

// keepRecords stores the records in which a denial was counted.
func (b *local) keepRecords(subject string, rules []rule, cells []*cell) {
	for i, r := range rules {
		if hasBan(r) && *cells[i].ban != (record{}) {
			key, rec := localKey{subject, r.id().ban.tail}, cells[i].ban
			switch {
			case rec.last > 0 || b.records.get(key) != nil:
				b.put(key, rec)
			case !b.denials.Contains(key):
				key.subject = strings.Clone(key.subject)
				b.denials.Add(key, rec)
			}
		}
	}
}

// banned reports whether the process knows that an enforced policy bans the subject. If
// so, the grant gets the readings of a subject that has taken nothing.
func (b *local) banned(l *Limiter, g *grant) bool {
	if b.known.Load() == 0 || !slices.ContainsFunc(l.rules, hasBan) {
		return false
	}
	subject := l.space.Subject(g.subject)
	b.mu.Lock()
	defer b.mu.Unlock()
	var few [fewRules]*cell
	cells := b.cellsOf(l, subject, few[:0])
	readings := make([]reading, len(l.rules))
	takeShare(l.rules, cells, 0, b.now(), -g.cost, readings)
	if !barred(l.rules, readings) {
		return false
	}
	copy(g.readings, readings)
	return true
}
