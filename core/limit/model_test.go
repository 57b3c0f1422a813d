package limit_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/neap-go/neap/core/limit"
)

// The model is what the documentation says about a limiter and one subject. It knows nothing of
// scripts, units or replies: each kind says how many permits are free at a time, and all figures
// follow from that. Its times are microseconds since 1970.

// spec describes a policy.
type spec struct {
	base               limit.Policy // one of the five, as a value
	shadow, once, kept bool
	ban                *limit.Ban
	lease              time.Duration // 0 for none
}

// policy makes the policy that users write.
func (s spec) policy() limit.Policy {
	p := s.base
	if s.once {
		p = limit.PerRequest(p)
	}
	if s.lease > 0 {
		p = limit.WithLease(p, s.lease)
	}
	if s.ban != nil {
		p = limit.WithBan(p, *s.ban)
	}
	if s.kept {
		p = limit.KeepOnChange(p)
	}
	if s.shadow {
		p = limit.Shadow(p)
	}
	return p
}

func policiesOf(specs []spec) (all []limit.Policy) {
	for _, s := range specs {
		all = append(all, s.policy())
	}
	return all
}

// part is one policy of a model.
type part struct {
	spec

	state algorithm
	bans  *banState // nil if it has no ban
	one   *int64    // how many processes share the limit; below 2 if one decides for all
}

// model has the enforced policies first.
type model struct {
	parts []*part
	hold  *banState // nil if the subject cannot be put on hold
	// inProcess: there, estimates have no lease.
	inProcess bool
	// lingers: a key is there for the whole millisecond at which it ends, as in a real server.
	lingers bool
	// one is how many processes share the limit when one of them decides without Redis. Below
	// 2, it decides for all.
	one int64
}

// newModel makes a model of a subject that was never seen.
func newModel(specs []spec, inProcess bool) *model {
	m := &model{inProcess: inProcess}
	m.become(specs)
	return m
}

// become gives the policies other numbers. What was counted stays. Policies are known by their
// names.
func (m *model) become(specs []spec) {
	was := m.parts
	m.parts = nil
	for _, s := range specs {
		if m.inProcess {
			s.lease = 0
		}
		p := &part{spec: s}
		if at := slices.IndexFunc(was, func(p *part) bool { return p.base.PolicyName() == s.base.PolicyName() }); at >= 0 {
			p = was[at]
			p.spec = s
		}
		if p.state == nil {
			p.state, p.one = newAlgorithm(s), &m.one
		}
		p.state.become(s.base)
		if l, is := p.state.(*leased); is {
			l.lingers = m.lingers
		}
		if s.ban != nil && p.bans == nil {
			p.bans = new(banState)
		}
		m.parts = append(m.parts, p)
	}
	slices.SortStableFunc(m.parts, func(a, b *part) int {
		return cmp.Compare(btoi(a.shadow), btoi(b.shadow))
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// costs returns what a request of that cost costs the policy.
func (p *part) costs(n int64) int64 {
	if p.once {
		return min(n, 1)
	}
	return n
}

// view is what users see of a decision.
type view struct {
	figures
	States []limit.State
}

type figures struct {
	Allowed               bool
	Policy                string
	Limit, Remaining      int64
	RetryAfter, ResetFrom time.Duration
}

// remaining is what is left of a policy.
func (v view) remaining(policy string) int64 {
	i := slices.IndexFunc(v.States, func(s limit.State) bool { return s.Policy == policy })
	return v.States[i].Remaining
}

func viewOf(d limit.Decision) view {
	return view{
		figures{d.Allowed, d.Policy, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter},
		slices.Collect(d.States()),
	}
}

func (v view) equal(other view) bool {
	return v.figures == other.figures && slices.Equal(v.States, other.States)
}

func (v view) String() string {
	text := fmt.Sprintf("%+v", v.figures)
	for _, s := range v.States {
		text += fmt.Sprintf("\n\t%+v", s)
	}
	return text
}

// receipt is what a decision took, for a refund or a settlement.
type receipt struct {
	cost  int64
	at    int64
	one   int64  // how many processes shared the limit
	marks []mark // of each part; nil if it took nothing
}

// empty reports whether the decision took nothing.
func (r *receipt) empty() bool {
	return !slices.ContainsFunc(r.marks, func(m mark) bool { return m != nil })
}

// reach does what a decision does to a part before it decides, and returns what undoes it.
func (m *model) reach(p *part, now, want int64) (undo func()) {
	var undos []func()
	if b, is := p.state.(mender); is && !m.inProcess { // where nothing breaks, and one of several may owe more
		undos = append(undos, b.mends(now))
	}
	if p.bans != nil {
		undos = append(undos, p.bans.mends(now))
	}
	if l, is := p.state.(*leased); is {
		undos = append(undos, l.lapse(now, want))
	}
	return func() {
		for _, undo := range slices.Backward(undos) {
			undo()
		}
	}
}

// take decides about n permits at a time, and charges them unless it only peeks.
func (m *model) take(now, n int64, peek bool) (view, *receipt) {
	denied, barred := make([]bool, len(m.parts)), m.hold.left(now) > 0 && !m.parts[0].shadow
	if m.hold != nil {
		if undo := m.hold.mends(now); peek || n == 0 {
			defer undo()
		}
	}
	for i, p := range m.parts {
		want := p.costs(n)
		if undo := m.reach(p, now, want); peek || n == 0 {
			defer undo()
		}
		room, fits := p.room(want)
		denied[i] = want > 0 && (!fits || room > p.state.free(now))
		barred = barred || p.bans.left(now) > 0 && !p.shadow
	}
	granted := !barred
	for i, p := range m.parts {
		if p.bans != nil && !peek && n > 0 && !barred && denied[i] && p.bans.left(now) == 0 {
			p.bans.count(*p.ban, now)
		}
		granted = granted && (p.shadow || !denied[i])
	}
	taken := &receipt{cost: n, at: now, one: m.one, marks: make([]mark, len(m.parts))}
	for i, p := range m.parts {
		if granted && !peek && n > 0 && !denied[i] && p.bans.left(now) == 0 && (i > 0 || m.hold.left(now) == 0) {
			taken.marks[i] = p.state.take(now, p.counts(p.costs(n), m.one))
		}
	}
	return m.view(now, n, denied), taken
}

// view returns what is told of a decision.
func (m *model) view(now, n int64, denied []bool) (v view) {
	v.Allowed = true
	more := int64(0)
	first := true
	for i, p := range m.parts {
		s := p.told(now, p.costs(n), denied[i])
		if left := m.hold.left(now); left > 0 && i == 0 {
			s.OnHold = true
			bar(&s, left)
		}
		v.States = append(v.States, s)
		if p.shadow {
			continue
		}
		v.Allowed = v.Allowed && s.Allowed
		further := s.Remaining / max(p.costs(n), 1)
		if first || cmp.Or(-cmp.Compare(s.RetryAfter, v.RetryAfter), cmp.Compare(further, more), cmp.Compare(s.Remaining, v.Remaining)) < 0 {
			first, more = false, further
			v.figures = figures{v.Allowed, s.Policy, s.Limit, s.Remaining, s.RetryAfter, s.ResetAfter}
		}
	}
	for _, s := range v.States {
		v.Allowed = v.Allowed && (s.Allowed || s.Shadow)
	}
	return v
}

// told returns what is told of one policy, for a request of that cost.
func (p *part) told(now, cost int64, denied bool) limit.State {
	free := func(t int64) int64 { return max(p.state.free(t), 0) }
	most := p.state.limit()
	s := limit.State{
		Policy: p.base.PolicyName(), Shadow: p.shadow, Allowed: !denied,
		Limit: most, Remaining: p.share(free(now)), Window: p.state.window(now),
	}
	idle := func(t int64) bool { return p.state.idle(t) }
	if !idle(now) {
		s.ResetAfter = p.after(now, idle)
		s.NextAfter = p.after(now, func(t int64) bool { return free(t) >= p.more(free(now)) })
	}
	if denied {
		s.RetryAfter = time.Second // a guess: the process can never grant more than its share
		if room, fits := p.room(cost); fits {
			s.RetryAfter = p.after(now, func(t int64) bool { return free(t) >= min(room, most) })
		}
	}
	if left := p.bans.left(now); left > 0 {
		s.Banned = true
		bar(&s, left)
	}
	return s
}

// bar makes the state one that denies everything for a while.
func bar(s *limit.State, left time.Duration) {
	if s.Remaining > 0 {
		s.NextAfter = 0
	}
	s.Allowed, s.Remaining = false, 0
	for _, d := range []*time.Duration{&s.RetryAfter, &s.NextAfter, &s.ResetAfter} {
		*d = max(*d, left)
	}
}

// after returns how long it takes until something holds, by the clock of the policy. It then
// holds for good.
func (p *part) after(now int64, holds func(t int64) bool) time.Duration {
	tick := p.state.tick()
	now -= now % tick
	low, high := int64(-1), int64(0)
	for !holds(now + high*tick) {
		low, high = high, max(2*high, 1)
		if low*tick > 300*365*24*time.Hour.Microseconds() {
			panic(fmt.Sprintf("%+v: it never holds", p.spec))
		}
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; holds(now + middle*tick) {
			high = middle
		} else {
			low = middle
		}
	}
	return time.Duration(high*tick) * time.Microsecond
}

// refund gives back what a decision took, and reports whether there was anything.
func (m *model) refund(now int64, r *receipt) (given bool) {
	for i, p := range m.parts {
		if r.marks[i] != nil {
			cost := p.counts(p.costs(r.cost), r.one)
			given = p.state.giveBack(now, r.marks[i], cost) || given
		}
	}
	return given
}

// settle replaces what a decision took by what was used.
func (m *model) settle(now int64, r *receipt, actual int64) (forgiven int64) {
	for i, p := range m.parts {
		if r.marks[i] == nil || p.once {
			continue
		}
		if l, is := p.state.(*leased); is {
			forgiven = max(forgiven, l.settle(now, r.marks[i].(*estimate), actual))
		} else if times, more := max(r.one, 1), actual-r.cost; more > 0 {
			forgiven = max(forgiven, p.state.owe(now, more*times)/times)
		} else if more < 0 {
			p.state.giveBack(now, r.marks[i], -more*times)
		}
	}
	return forgiven
}

// reset forgets what was taken and lifts a hold, and reports whether anything was in use.
func (m *model) reset(now int64) (found bool) {
	if m.hold != nil {
		found = !m.hold.told && m.hold.left(now) > 0 // or else Redis says whether it still lasts
		*m.hold = banState{}
	}
	for _, p := range m.parts {
		found = found || !p.state.idle(now)
		p.state = newAlgorithm(p.spec)
		p.state.become(p.base)
	}
	return found
}
