package lease

import (
	"math/rand/v2"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// lane is what is due on one server. A server that does not answer delays no other.
type lane struct {
	ready   ordered[*group] // by when the first of their leases ends
	sending int             // goroutines that renew
	busy    int             // those of them that wait for an answer
	leases  int             // that these calls renew
}

func (w *Wheel) laneOf(key string) *lane {
	at := w.server(key)
	l := w.lanes[at]
	if l == nil {
		l = &lane{ready: ordered[*group]{
			less:  func(a, b *group) bool { return a.first().until.Before(b.first().until) },
			place: func(g *group) *int { return &g.place },
		}}
		w.lanes[at] = l
	}
	return l
}

// start starts a goroutine if one more can renew what is due.
func (w *Wheel) start(l *lane) {
	if l.sending < atOnce && l.leases < full && l.sending-l.busy < len(l.ready.all) {
		l.sending++
		background.Go(func() { w.renewDue(l) })
	}
}

// renewDue renews what is due on a server until nothing is.
func (w *Wheel) renewDue(l *lane) {
	exited := true // a renewer may end the goroutine
	defer func() {
		if exited {
			w.mu.Lock()
			defer w.mu.Unlock()
			l.sending--
			w.start(l)
		}
	}()
	for w.renewNext(l) {
	}
	exited = false
}

// renewNext makes one call. It returns false if nothing was due.
func (w *Wheel) renewNext(l *lane) (more bool) {
	all, g := w.next(l)
	if g == nil {
		return false
	}
	began := time.Now()
	defer func() { w.settle(l, g, all, began) }()
	defer background.Recover(new(error))
	more = true
	g.by.Renew(g.key, all)
	return more
}

// next takes leases of one group that are due. If none is, the goroutine must end.
func (w *Wheel) next(l *lane) (all []*Member, g *group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(l.ready.all) == 0 || l.leases >= full {
		l.sending--
		return nil, nil
	}
	l.busy++
	g = l.ready.first()
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
	l.leases += len(all)
	w.arm()
	return all, g
}

// settle schedules the next renewals of leases that were renewed, or that could not be.
func (w *Wheel) settle(l *lane, g *group, all []*Member, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.busy--
	l.leases -= len(all)
	w.start(l)
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
