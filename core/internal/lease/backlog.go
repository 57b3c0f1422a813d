package lease

import (
	"math/rand/v2"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// backlog is what is due on one server. A server that does not answer delays no other.
type backlog struct {
	ready   ordered[*group] // by when the first of their leases ends
	sending int             // goroutines that renew
	busy    int             // those of them that wait for an answer
	leases  int             // that these calls renew
}

func (w *Wheel) backlogOf(key string) *backlog {
	at := w.server(key)
	b := w.backlogs[at]
	if b == nil {
		b = &backlog{ready: ordered[*group]{
			less:  func(a, b *group) bool { return a.first().until.Before(b.first().until) },
			place: func(g *group) *int { return &g.place },
		}}
		w.backlogs[at] = b
	}
	return b
}

// start starts a goroutine if one more can renew what is due.
func (w *Wheel) start(b *backlog) {
	if b.sending < atOnce && b.leases < full && b.sending-b.busy < len(b.ready.all) {
		b.sending++
		background.Go(func() { w.renewDue(b) })
	}
}

// renewDue renews what is due on a server until nothing is.
func (w *Wheel) renewDue(b *backlog) {
	exited := true // a renewer may end the goroutine
	defer func() {
		if exited {
			w.mu.Lock()
			defer w.mu.Unlock()
			b.sending--
			w.start(b)
		}
	}()
	for w.renewNext(b) {
	}
	exited = false
}

// renewNext makes one call. It returns false if nothing was due.
func (w *Wheel) renewNext(b *backlog) (more bool) {
	all, g := w.next(b)
	if g == nil {
		return false
	}
	began := time.Now()
	defer func() { w.reschedule(b, g, all, began) }()
	defer background.Recover(new(error))
	more = true
	g.by.Renew(g.key, all)
	return more
}

// next takes leases of one group that are due. If none is, the goroutine must end.
func (w *Wheel) next(b *backlog) (all []*Member, g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(b.ready.all) == 0 || b.leases >= full {
		b.sending--
		return nil, nil
	}
	b.busy++
	g = b.ready.first()
	w.change(g, func() {
		now := time.Now()
		for len(g.members.all) > 0 && len(all) < Together {
			m := g.first()
			if now.Before(m.due.Add(-m.length / Renewals / early)) {
				return
			}
			g.members.remove(m)
			m.Result = Failed
			all = append(all, m)
		}
	})
	b.leases += len(all)
	w.arm()
	return all, g
}

// reschedule schedules the next renewals of leases that were renewed, or that could not be.
func (w *Wheel) reschedule(b *backlog, g *group, all []*Member, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.busy--
	b.leases -= len(all)
	w.start(b)
	sooner := time.Duration(0) // the same for all, so that they stay together
	for _, m := range all {
		switch {
		case m.group == nil: // it was removed meanwhile
			continue
		case m.Result == Over:
			w.remove(m)
			continue
		case m.Result == Renewed:
			m.until = began.Add(m.length)
		}
		pause := Pause(m.length, m.Result == Renewed)
		if sooner == 0 && !w.exact {
			sooner = rand.N(max(pause/early, 1))
		}
		m.group = w.groupOf(m, g.name) // it may have been dropped while it was empty
		w.schedule(m, began.Add(pause-sooner))
	}
	w.arm()
}
