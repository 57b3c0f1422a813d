package cells

import "github.com/neap-go/neap/core/limit/internal/kind"

// seed is what Redis last reported about a subject, and when this process got it, by the local
// clock. In an outage, the local state of the subject begins with it.
type seed struct {
	at int64
	kind.Reading
}

// noteSeeds stores what Redis reported about a subject.
func (b *Cells) noteSeeds(set *kind.Set, of *kind.Request, at int64) {
	for i, r := range set.Rules {
		b.seeds.Update(of.Subject, r.Tail, func(last *seed, known bool) (*seed, bool) {
			if known { // nobody else has it
				*last = seed{at, of.Readings[i]}
				return last, false
			}
			return &seed{at, of.Readings[i]}, true
		})
	}
}

// resume makes cells continue from what Redis last reported, if less is left there than
// in the cell. (The cell may know of takes in an outage before.) A seed is used once.
// resume reports whether any was used.
func (b *Cells) resume(set *kind.Set, subject string, cells []*kind.Cell, now int64) (used bool) {
	for i, r := range set.Rules {
		last, known := b.seeds.Remove(subject, r.Tail)
		if !known {
			continue
		}
		seeded := kind.Cell{Ban: cells[i].Ban, Hold: cells[i].Hold}
		r.Resume(&seeded, last.Reading, last.at)
		r.Advance(&seeded, now)
		r.Advance(cells[i], now)
		if remains(r, &seeded) < remains(r, cells[i]) {
			*cells[i] = seeded
			used = true
		}
	}
	return used
}

func remains(r *kind.Rule, c *kind.Cell) int64 { return r.Figures(r.Read(c, 0), 0).Remaining }
