//go:build neap_upgrade

package upgrade

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

// unique names what calls get.
var unique = func() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprint("h", n)
	}
}()

// do sends a call of a session. answered is false if the process was killed meanwhile: then
// Redis has executed the call or not.
func (f *faults) do(p *process, op string, c wire.Call) (a wire.Answer, answered bool) {
	c.Op = op
	a, err := p.call(c)
	if err != nil {
		if !errors.Is(err, errGone) {
			f.addf("%v", err)
		}
		return a, false
	}
	if a.Word == "error" {
		f.addf("%s of %q by the %s: got the error %q, want none", op, c.Key, p.version, a.Text)
	}
	return a, true
}

// both are a process of each version, for a verdict.
func both(f *fleet) []*process { return f.live[:2] }

// takes is the area of limits: both versions use up limits of 100 of each kind.
type takes struct {
	faults

	limits []*limited
}

// limited is one subject of one limit. granted is what was granted and not given back;
// unknown is what calls without an answer may have changed.
type limited struct {
	call wire.Call

	mu               sync.Mutex
	granted, unknown int64
	by               map[string]int64
}

const limitOfAll = 100

func newTakes(*fleet) *takes {
	t := &takes{}
	for _, s := range sets {
		for _, subject := range []string{"ann", "bob with a space"} {
			t.limits = append(t.limits, &limited{
				call: wire.Call{Conf: wire.Conf{Name: "load", Policies: s.policies, Secret: s.secret}, Key: s.name + subject},
				by:   map[string]int64{},
			})
		}
	}
	return t
}

func (t *takes) name() string { return "limits" }

func (t *takes) session(f *fleet, r *rand.Rand) {
	p := f.pick(r)
	defer p.sessions.Done()
	t.take(t.limits[r.IntN(len(t.limits))], p, 1+r.Int64N(2), r.IntN(8) == 0)
}

// take takes permits, and gives them back perhaps. It returns whether they were granted.
func (t *takes) take(l *limited, p *process, n int64, refund bool) bool {
	c := l.call
	c.N, c.As = n, unique()
	a, answered := t.do(p, "limit.take", c)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !answered:
		l.unknown += n
		return false
	case !a.OK:
		return false
	}
	l.granted += n
	l.by[p.version] += n
	if l.granted > limitOfAll {
		t.addf("%s: %d permits are granted at once, want %d at most", l.call.Key, l.granted, limitOfAll)
	}
	if !refund {
		return true
	}
	l.granted -= n // before another can be granted it
	l.mu.Unlock()
	a, answered = t.do(p, "limit.refund", of(c))
	l.mu.Lock()
	switch {
	case !answered:
		l.unknown += n
	case a.Word != "":
		t.addf("%s: a refund by the %s: got the error %q, want none", l.call.Key, p.version, a.Text)
	}
	return true
}

func (t *takes) verdict(f *fleet, _ *rand.Rand) {
	for _, l := range t.limits {
		for _, p := range both(f) {
			for t.take(l, p, 1, false) { // until nothing is left
			}
		}
		if l.granted > limitOfAll || l.granted+l.unknown < limitOfAll {
			t.addf("%s: got %d permits granted (%d more may be) and the rest denied, want %d", l.call.Key, l.granted, l.unknown, limitOfAll)
		}
		if len(l.by) != 2 {
			t.addf("%s: got permits granted by %v, want some by both versions", l.call.Key, l.by)
		}
		for _, p := range both(f) {
			if a, _ := t.do(p, "limit.peek", l.call); a.N != 0 {
				t.addf("%s: got %d left by the %s, want 0", l.call.Key, a.N, p.version)
			}
		}
	}
}

// holds is the area of locks: one holder at a time, and fences that grow.
type holds struct {
	faults
	crossings

	locks []*locked
}

type locked struct {
	key string

	mu      sync.Mutex
	holder  string // what the holder's call got; "" while there is none, as far as is known
	fence   int64
	last    string            // the version of the last holder
	overlap map[string]string // a holder and who was granted the lock beside it
}

func newHolds() *holds {
	h := &holds{}
	for i := range 4 {
		h.locks = append(h.locks, &locked{key: fmt.Sprint("job ", i), overlap: map[string]string{}})
	}
	return h
}

func (h *holds) name() string { return "locks" }

func (h *holds) session(f *fleet, r *rand.Rand) {
	p := f.pick(r)
	defer p.sessions.Done()
	h.hold(h.locks[r.IntN(len(h.locks))], p, r)
}

func (h *holds) hold(l *locked, p *process, r *rand.Rand) {
	c := wire.Call{Conf: wire.Conf{Name: "load", Lease: shortLease, Wait: 40 * second}, Key: l.key, As: unique()}
	a, answered := h.do(p, "lock.acquire", c)
	switch {
	case !answered:
		return
	case a.Word != "":
		h.addf("%s: acquire by the %s: got the error %q, want the lock", l.key, p.version, a.Text)
		return
	}
	l.mu.Lock()
	if a.Fence <= l.fence {
		h.addf("%s: got the fence %d by the %s after %d, want a larger one", l.key, a.Fence, p.version, l.fence)
	}
	if l.holder != "" {
		l.overlap[l.holder] = fmt.Sprintf("the %s was granted the lock while the %s held it", p.version, l.last)
	}
	h.note(l.last, p.version)
	l.fence, l.holder, l.last = a.Fence, c.As, p.version
	l.mu.Unlock()

	time.Sleep(time.Duration(r.Int64N(int64(2 * time.Millisecond))))

	l.mu.Lock()
	if l.holder == c.As {
		l.holder = ""
	}
	l.mu.Unlock()
	a, answered = h.do(p, "lock.release", of(c))
	l.mu.Lock()
	defer l.mu.Unlock()
	// Who released it without an error held it to the end; any other lost it to a pause.
	if beside := l.overlap[c.As]; beside != "" && answered && a.Word == "" {
		h.addf("%s: %s", l.key, beside)
	}
}

func (h *holds) verdict(f *fleet, r *rand.Rand) {
	for _, l := range h.locks {
		for _, p := range both(f) {
			h.hold(l, p, r)
			if a, _ := h.do(p, "lock.inspect", wire.Call{Conf: wire.Conf{Name: "load", Lease: shortLease, Wait: 40 * second}, Key: l.key}); a.OK || a.Fence != l.fence {
				h.addf("%s in the end: got held %v, fence %d by the %s, want it free with %d", l.key, a.OK, a.Fence, p.version, l.fence)
			}
		}
	}
	h.judge(&h.faults, "locks")
}

// runs is the area of guards: each key runs once, and every other caller gets its result.
type runs struct {
	faults
	crossings

	keys []*run
}

type run struct {
	key string

	mu      sync.Mutex
	begun   int      // runs that did not say that nothing was done
	crashed int      // runs whose process was killed before it was told that they are noted
	by      string   // the version that concluded
	results [][]byte // what was sent as a result
	done    []byte   // what was noted
}

func newRuns() *runs {
	g := &runs{}
	for i := range 400 {
		g.keys = append(g.keys, &run{key: fmt.Sprint("order-", strings.Repeat("x", i%3*40), i)})
	}
	return g
}

func (g *runs) name() string { return "guards" }

func (g *runs) session(f *fleet, r *rand.Rand) {
	p := f.pick(r)
	defer p.sessions.Done()
	g.deliver(g.keys[r.IntN(len(g.keys))], p, r, "guard.begin")
}

func (g *runs) deliver(k *run, p *process, r *rand.Rand, how string) {
	c := wire.Call{Conf: wire.Conf{Name: "load", Lease: shortLease, Wait: 40 * second}, Key: k.key, As: unique()}
	a, answered := g.do(p, how, c)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !answered: // it may have begun, and be told to nobody
	case a.Word == "in flight" && how == "guard.begin":
	case a.Word != "":
		g.addf("%s: %s by the %s: got the error %q, want a claim or a result", k.key, how, p.version, a.Word)
	case a.OK:
		if k.done == nil && slices.ContainsFunc(k.results, func(b []byte) bool { return bytes.Equal(a.Bytes, b) }) {
			k.done = a.Bytes
		}
		if k.done == nil || !bytes.Equal(a.Bytes, k.done) {
			g.addf("%s: got a result of %d bytes by the %s, want the %d of the %s that ran it", k.key, len(a.Bytes), p.version, len(k.done), k.by)
		}
		g.note(k.by, p.version)
	default:
		g.run(k, p, r, c)
	}
}

// run does what a claim is for. k.mu is locked but while a call is on its way.
func (g *runs) run(k *run, p *process, r *rand.Rand, c wire.Call) {
	if k.begun++; k.done != nil || k.begun > 1+k.crashed {
		g.addf("%s: the %s runs it again (%d times, %d of which crashed), and it was done by the %s", k.key, p.version, k.begun, k.crashed, k.by)
	}
	c.How, c.Bytes = "done", some(1+r.IntN(800))
	if r.IntN(10) == 0 {
		c.How, c.Bytes = "nothing", nil
		k.begun--
	} else {
		k.by = p.version
		k.results = append(k.results, c.Bytes)
	}
	k.mu.Unlock()
	a, answered := g.do(p, "guard.conclude", of(c))
	k.mu.Lock()
	switch {
	case !answered:
		if c.How == "done" {
			k.crashed++
		}
	case a.Word != "":
		g.addf("%s: the claim of the %s: got the error %q, want it concluded", k.key, p.version, a.Word)
	case c.How == "done":
		k.done = c.Bytes
	}
}

func (g *runs) verdict(f *fleet, r *rand.Rand) {
	for _, k := range g.keys {
		if len(k.results) == 0 {
			continue
		}
		for k.done == nil && len(g.complaints()) == 0 { // its process was killed
			g.deliver(k, both(f)[0], r, "guard.await")
		}
		for _, p := range both(f) {
			g.deliver(k, p, r, "guard.await")
		}
	}
	g.judge(&g.faults, "results")
}

// sales is the area of stock: no unit is sold twice, and none is lost.
type sales struct {
	faults
	crossings

	call wire.Call

	mu     sync.Mutex
	put    int64             // units put in
	next   int               // the number of the next buyer
	sold   int64             // as their buyers were told
	buyers map[string]string // what their last call came to: sold, cancelled or unknown
	size   map[string]int64
}

func newSales(f *fleet) *sales {
	s := &sales{
		call: wire.Call{Conf: wire.Conf{Name: "load", Lease: hour}, Key: "phone"}, put: 2200,
		buyers: map[string]string{}, size: map[string]int64{},
	}
	c := s.call
	c.N, c.For = s.put, day
	s.do(f.live[0], "stock.open", c)
	return s
}

func (s *sales) name() string { return "stock" }

func (s *sales) session(f *fleet, r *rand.Rand) {
	if r.IntN(60) == 0 {
		s.restock(f, r)
		return
	}
	p := f.pick(r)
	defer p.sessions.Done()
	s.buy(f, r, p)
}

// restock puts units in, and then tells any process of the same delivery again.
func (s *sales) restock(f *fleet, r *rand.Rand) {
	c := s.call
	c.N, c.Order = 5, unique()
	for answers := 0; answers < 2; {
		p := f.pick(r)
		a, answered := s.do(p, "stock.restock", c)
		p.sessions.Done()
		if !answered {
			continue
		}
		if a.Word != "" {
			s.addf("restock by the %s: got the error %q, want none", p.version, a.Word)
			return
		}
		if answers++; answers == 1 {
			s.mu.Lock()
			s.put += c.N
			s.mu.Unlock()
		}
	}
}

// buy reserves and then confirms or cancels, in the same process or in another.
func (s *sales) buy(f *fleet, r *rand.Rand, p *process) {
	s.mu.Lock()
	s.next++
	buyer := fmt.Sprint("b", s.next)
	s.mu.Unlock()
	c := s.call
	c.Buyer, c.Order, c.N, c.As = buyer, "o"+buyer, 1+r.Int64N(3), unique()
	a, answered := s.do(p, "stock.reserve", c)
	if answered && a.Word == "sold out" {
		return
	}
	s.note(buyer, "unknown", c.N)
	if !answered {
		return
	}
	if a.Word != "" {
		s.addf("reserve by the %s: got the error %q, want units or sold out", p.version, a.Word)
		return
	}
	by := p
	if r.IntN(2) == 0 {
		if other := f.pick(r); other != p {
			defer other.sessions.Done()
			by = other
			c.As = unique()
			if _, answered := s.do(by, "stock.resume", c); !answered {
				return
			}
		} else {
			other.sessions.Done()
		}
	}
	op, outcome := "stock.confirm", "sold"
	if r.IntN(4) == 0 {
		op, outcome = "stock.cancel", "cancelled"
	}
	a, answered = s.do(by, op, of(c))
	switch {
	case !answered:
		return
	case a.Word != "":
		s.addf("%s by the %s of what the %s reserved: got the error %q, want none", op, by.version, p.version, a.Word)
		return
	}
	s.note(buyer, outcome, c.N)
	s.crossings.note(p.version, by.version)
}

func (s *sales) note(buyer, outcome string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buyers[buyer], s.size[buyer] = outcome, n
	if outcome == "sold" {
		s.sold += n
	}
	if s.sold > s.put+5*clients { // a delivery may be on its way
		s.addf("got %d units sold, want %d at most", s.sold, s.put)
	}
}

func (s *sales) verdict(f *fleet, _ *rand.Rand) {
	for _, p := range both(f) {
		left, _ := s.do(p, "stock.left", s.call)
		if len(left.Counts) != 4 || left.Word != "" {
			s.addf("the counts by the %s: got %v and the error %q, want four", p.version, left.Counts, left.Word)
			continue
		}
		units, free, held, sold := left.Counts[0], left.Counts[1], left.Counts[2], left.Counts[3]
		if units != s.put || free+held+sold != units {
			s.addf("the counts by the %s: got %v, want %d units in all, and as many left, held and sold", p.version, left.Counts, s.put)
		}
		all, _ := s.do(p, "stock.buyers", s.call)
		s.compare(p, all.Names, held, sold)
	}
	s.judge(&s.faults, "reservations")
}

// compare holds what buyers were told to what Redis has of them.
func (s *sales) compare(p *process, all []string, held, sold int64) {
	has := map[string]string{}
	sum := map[string]int64{}
	for _, line := range all {
		var buyer, id, state string
		var n int64
		if _, err := fmt.Sscan(line, &buyer, &id, &n, &state); err != nil || n != s.size[buyer] || id != "o"+buyer {
			s.addf("a buyer by the %s: got %q, want %d units", p.version, line, s.size[buyer])
		}
		has[buyer] = state
		sum[state] += n
	}
	if sum["held"] != held || sum["sold"] != sold {
		s.addf("units of the buyers by the %s: got %v, want %d held, %d sold", p.version, sum, held, sold)
	}
	for buyer, told := range s.buyers {
		if got := has[buyer]; told == "sold" && got != "sold" || told == "cancelled" && got != "" {
			s.addf("the buyer %s was told %s: Redis has %q by the %s", buyer, told, got, p.version)
		}
	}
}

// flights is the area of requests in flight: no more than a limit at once.
type flights struct {
	faults
	crossings

	call wire.Call

	mu    sync.Mutex
	count int64
	most  int64
	last  string
}

const mostInFlight = 2

func newFlights() *flights {
	return &flights{call: wire.Call{Conf: wire.Conf{Name: "load", Slots: mostInFlight, Lease: shortLease}, Key: "reports"}}
}

func (g *flights) name() string { return "requests in flight" }

func (g *flights) session(f *fleet, r *rand.Rand) {
	p := f.pick(r)
	defer p.sessions.Done()
	c := g.call
	c.As = unique()
	a, answered := g.do(p, "slots.try", c)
	if !answered || !a.OK {
		return
	}
	g.mu.Lock()
	g.count++
	g.most = max(g.most, g.count)
	if g.count > mostInFlight {
		g.addf("got %d in flight at once, want %d at most", g.count, mostInFlight)
	}
	g.note(g.last, p.version)
	g.last = p.version
	g.mu.Unlock()
	time.Sleep(time.Duration(r.Int64N(int64(4 * time.Millisecond))))
	g.mu.Lock()
	g.count--
	g.mu.Unlock()
	g.do(p, "slots.release", of(c))
}

func (g *flights) verdict(f *fleet, _ *rand.Rand) {
	for _, p := range both(f) {
		var a wire.Answer
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if a, _ = g.do(p, "slots.count", g.call); a.N == 0 {
				break
			}
		}
		if a.N != 0 {
			g.addf("got %d in flight by the %s a minute after the last request, want 0", a.N, p.version)
		}
	}
	if g.most < mostInFlight {
		g.addf("got %d in flight at the most, want the limit of %d", g.most, mostInFlight)
	}
	g.judge(&g.faults, "slots")
}
