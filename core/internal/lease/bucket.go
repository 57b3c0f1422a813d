package lease

import "time"

// bucket is what will be due within a tick.
type bucket struct {
	at     time.Duration
	groups []*group // at least one
	place  int
}

// timeOf returns the time of the bucket for a lease.
func (w *Wheel) timeOf(m *Member) time.Duration {
	due := m.due.Sub(w.began)
	if w.exact {
		return due
	}
	return due.Truncate(min(tick, m.length/Renewals/early))
}

func (w *Wheel) putIn(g *group, at time.Duration) {
	b := w.buckets[at]
	if b == nil {
		b = &bucket{at: at}
		w.buckets[at] = b
		w.waiting.add(b)
	}
	g.bucket, g.place = b, len(b.groups)
	b.groups = append(b.groups, g)
}

func (w *Wheel) takeOut(g *group) {
	b, end := g.bucket, len(g.bucket.groups)-1
	b.groups[g.place] = b.groups[end]
	b.groups[g.place].place = g.place
	b.groups[end] = nil
	b.groups = b.groups[:end]
	g.bucket, g.place = nil, 0
	if end == 0 {
		w.waiting.remove(b)
		delete(w.buckets, b.at)
	}
}
