package lease

import (
	"sync"
	"time"

	"github.com/neap-go/neap/core/internal/background"
)

// These constants say how renewals are sent.
const (
	// Together is how many leases one call renews at most.
	Together = 64
	// atOnce is how many calls are on their way to a server at a time, and full is how many
	// leases have to be in them to make that enough. So decisions wait behind a bounded
	// amount of work.
	atOnce, full = 64, 256
	// early is the part of a pause by which a renewal may come early, so that leases that
	// began together spread out. Leases of one key that are due within that time are
	// renewed in one call.
	early = 8
	// tick is by how much more a renewal may be early. What is due in one tick is sent
	// together, which costs less.
	tick = 20 * time.Millisecond
)

// Wheel renews the leases of a store, and tells their holders when they are over. If many
// are due, those that end first are renewed first. While no lease is in it, it has neither
// a timer nor a goroutine. It is safe for concurrent use.
type Wheel struct {
	server func(key string) string // the address of the server that has a key
	exact  bool                    // no renewal is early; for tests

	began    time.Time
	mu       sync.Mutex
	groups   map[name]*group           // those with leases that are renewed together
	buckets  map[time.Duration]*bucket // by their times since began
	waiting  ordered[*bucket]          // by their times
	backlogs map[string]*backlog       // by server
	ending   ordered[*Member]          // by when the leases end
	leaving  []*Member                 // what RemoveSoon was told
	timer    *time.Timer
	set      time.Time // when the timer goes off; zero if it is stopped
}

// Renewer renews leases.
type Renewer interface {
	// Renew renews leases of one key by one call, and sets the Result of each.
	Renew(key string, all []*Member)
}

// Result is how the renewal of a lease ended.
type Result uint8

// These are the results.
const (
	Failed  Result = iota // it is tried again soon
	Renewed               // it lasts for its length again
	Over                  // there is nothing to renew any more
)

// Member is a lease in a wheel. The zero Member is in none. It must not be copied.
type Member struct {
	// Alone says that the lease is the only one of its renewer.
	Alone bool
	// Of is what the lease is for, as the renewer knows it.
	Of any
	// Result is how the last renewal ended. It is Failed when Renew is called.
	Result Result
	// Lapse is called when the lease ends, on the goroutine of the timer. It returns when
	// the lease ends instead, or the zero time if it is over. If it is nil, no holder is
	// told.
	Lapse func() time.Time

	length time.Duration
	own    group  // if it is alone
	group  *group // nil if it is not in the wheel, or is not renewed
	due    time.Time
	until  time.Time // when the lease ends, as far as the wheel knows
	lapses time.Time // when Lapse is called

	atGroup, atEnding int // places in heaps
}

// name is what leases that are renewed together have in common.
type name struct {
	by  Renewer
	key string
}

// group is the leases of one name that are not being renewed now.
type group struct {
	name
	members ordered[*Member] // by when they are due
	backlog *backlog         // nil if no member is due
	bucket  *bucket          // nil if a member is due
	place   int              // in the backlog, or in the bucket
}

func (g *group) first() *Member { return g.members.first() }

// NewWheel makes a wheel. server returns the address of the server that has a key, or "".
func NewWheel(server func(key string) string) *Wheel {
	return &Wheel{
		server:   server,
		began:    time.Now(),
		groups:   map[name]*group{},
		buckets:  map[time.Duration]*bucket{},
		backlogs: map[string]*backlog{},
		waiting: ordered[*bucket]{
			less:  func(a, b *bucket) bool { return a.at < b.at },
			place: func(b *bucket) *int { return &b.place },
		},
		ending: ordered[*Member]{
			less:  func(a, b *Member) bool { return a.lapses.Before(b.lapses) },
			place: func(m *Member) *int { return &m.atEnding },
		},
	}
}

// Add puts a lease into the wheel. length is how long a renewal makes it last, and until
// is when it ends without one. It is renewed from due on, unless by is nil. Leases with
// the same renewer and key are renewed together.
func (w *Wheel) Add(m *Member, by Renewer, key string, length time.Duration, due, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeSome()
	m.length, m.until, m.lapses = length, until, until
	if by != nil {
		m.group = w.groupOf(m, name{by, key})
		w.schedule(m, due)
	}
	if m.Lapse != nil {
		w.ending.add(m)
	}
	w.arm()
}

// Remove takes a lease out of the wheel. A renewal that is on its way is not awaited.
func (w *Wheel) Remove(m *Member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(m)
	w.arm()
}

// RemoveSoon is Remove for a caller that must touch no timer, such as a cleanup of the
// runtime, which runs outside of the bubbles of testing/synctest. The wheel takes the lease
// out when it is given others, and at the latest when the timer goes off.
func (w *Wheel) RemoveSoon(m *Member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.group != nil || m.atEnding != 0 {
		w.leaving = append(w.leaving, m)
	}
}

// removeLeaving takes out some of these leases, and reports whether there are more. They
// are only some, so that a caller who adds a lease meanwhile waits little.
func (w *Wheel) removeLeaving() (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeSome()
	w.arm()
	return len(w.leaving) > 0
}

func (w *Wheel) removeSome() {
	rest := max(len(w.leaving)-Together, 0)
	for _, m := range w.leaving[rest:] {
		w.remove(m)
	}
	clear(w.leaving[rest:])
	if w.leaving = w.leaving[:rest]; rest == 0 {
		w.leaving = nil
	}
}

func (w *Wheel) remove(m *Member) {
	w.ending.remove(m)
	if g := m.group; g != nil {
		m.group = nil
		w.change(g, func() { g.members.remove(m) })
	}
}

func (w *Wheel) groupOf(m *Member, n name) *group {
	g := &m.own
	if !m.Alone {
		if g = w.groups[n]; g != nil {
			return g
		}
		g = &group{}
		w.groups[n] = g
	}
	if g.by == nil {
		g.name = n
		g.members = ordered[*Member]{
			less:  func(a, b *Member) bool { return a.due.Before(b.due) },
			place: func(m *Member) *int { return &m.atGroup },
		}
	}
	return g
}

// schedule makes a lease due at that time.
func (w *Wheel) schedule(m *Member, due time.Time) {
	m.due = due
	w.change(m.group, func() { m.group.members.add(m) })
}

// change changes the members of a group, and puts the group where it then belongs. A group
// is not in order while its members change.
func (w *Wheel) change(g *group, how func()) {
	switch {
	case g.backlog != nil:
		g.backlog.ready.remove(g)
		g.backlog = nil
	case g.bucket != nil:
		w.takeOut(g)
	}
	how()
	if len(g.members.all) == 0 {
		if w.groups[g.name] == g { // another may have its name: see reschedule
			delete(w.groups, g.name)
		}
		return
	}
	if at := w.timeOf(g.first()); time.Since(w.began) < at {
		w.putIn(g, at)
		return
	}
	g.backlog = w.backlogOf(g.key)
	g.backlog.ready.add(g)
	w.start(g.backlog)
}

// arm sets the timer for what is due next.
func (w *Wheel) arm() {
	var next time.Time
	if len(w.waiting.all) > 0 {
		next = w.began.Add(w.waiting.first().at)
	}
	if len(w.ending.all) > 0 {
		if at := w.ending.first().lapses; next.IsZero() || at.Before(next) {
			next = at
		}
	}
	switch {
	case next.Equal(w.set):
	case next.IsZero():
		w.timer.Stop()
	case w.timer == nil:
		w.timer = background.AfterFunc(time.Until(next), w.tick)
	default:
		w.timer.Reset(time.Until(next))
	}
	w.set = next
}

// tick runs on the timer.
func (w *Wheel) tick() {
	w.mu.Lock()
	w.set = time.Time{}
	now := time.Now()
	for len(w.waiting.all) > 0 && w.waiting.first().at <= now.Sub(w.began) {
		w.change(w.waiting.first().groups[0], func() {})
	}
	var over []*Member
	for len(w.ending.all) > 0 && !now.Before(w.ending.first().lapses) {
		m := w.ending.first()
		w.ending.remove(m)
		over = append(over, m)
	}
	w.arm()
	w.mu.Unlock()
	for _, m := range over {
		w.lapse(m)
	}
	for more := true; more; {
		more = w.removeLeaving()
	}
}

// lapse calls Lapse without the lock, because holders have locks of their own.
func (w *Wheel) lapse(m *Member) {
	until := m.Lapse()
	w.mu.Lock()
	defer w.mu.Unlock()
	if until.IsZero() {
		w.remove(m)
	} else if m.atEnding == 0 {
		m.lapses = until
		w.ending.add(m)
	}
	w.arm()
}
