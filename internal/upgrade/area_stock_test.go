//go:build neap_upgrade

package upgrade

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

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
