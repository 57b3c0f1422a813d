package stock_test

import (
	"slices"

	"github.com/neap-go/neap/core/stock"
)

// model is what a Stock should do, without Redis. It follows the documents and not the
// scripts. Its times are in hours.
type model struct {
	now   int64
	items map[string]*sale
}

type sale struct {
	units, left int64
	buyers      map[string]*part
	restocks    map[string]int64
}

// part is the reservation of one buyer.
type part struct {
	id       string
	quantity int64
	sold     bool
	ends     int64
	calls    []int // the calls that were granted it; nil if another call has confirmed beside the eight
}

const (
	leaseHours = 10
	mostCalls  = 8
)

// at returns the item at the current time, with the units of ended leases back in stock.
func (m *model) at(item string) *sale {
	s := m.items[item]
	if s != nil {
		for buyer, p := range s.buyers {
			if !p.sold && p.ends <= m.now {
				s.left += p.quantity
				delete(s.buyers, buyer)
			}
		}
	}
	return s
}

func (s *sale) held() (n int64) {
	for _, p := range s.buyers {
		if !p.sold {
			n += p.quantity
		}
	}
	return n
}

func (m *model) open(item string, units int64) bool {
	if m.at(item) != nil {
		return false
	}
	m.items[item] = &sale{units: units, left: units, buyers: map[string]*part{}, restocks: map[string]int64{}}
	return true
}

func (m *model) restock(item, id string, units int64) error {
	s := m.at(item)
	switch {
	case s == nil:
		return stock.ErrUnknown
	case s.restocks[id] == units:
		return nil
	case s.restocks[id] != 0:
		return stock.ErrQuantity
	}
	s.restocks[id] = units
	s.units += units
	s.left += units
	return nil
}

// These are the ways in which units are taken: on a lease, immediately, or by Confirm.
type taking int

const (
	leasing taking = iota
	atOnceTaking
	confirming
)

// take is Reserve or Confirm by one call.
func (m *model) take(item, buyer, id string, quantity int64, how taking, call int) (again, sold bool, err error) {
	s := m.at(item)
	if s == nil {
		return false, false, stock.ErrUnknown
	}
	p := s.buyers[buyer]
	switch {
	case p != nil && p.id != id:
		return false, false, stock.ErrYours
	case p != nil && p.quantity != quantity:
		return false, false, stock.ErrQuantity
	case p == nil && s.left < quantity:
		return false, false, stock.ErrSoldOut
	case p == nil:
		p = &part{id: id, quantity: quantity, calls: []int{call}}
		s.buyers[buyer] = p
		s.left -= quantity
	case p.calls == nil || slices.Contains(p.calls, call):
	case len(p.calls) < mostCalls:
		p.calls = append(p.calls, call)
	case how != confirming:
		return false, false, stock.ErrCalls
	default:
		p.calls = nil
	}
	p.sold = p.sold || how != leasing
	p.ends = m.now + leaseHours
	return p.calls == nil || p.calls[0] != call, p.sold, nil
}

// everybody cancels and renews the parts of all calls.
const everybody = -1

func (m *model) renew(item, buyer, id string, call int) (sold bool, err error) {
	s := m.at(item)
	if s == nil {
		return false, stock.ErrUnknown
	}
	p := s.buyers[buyer]
	if p == nil || p.id != id || call != everybody && p.calls != nil && !slices.Contains(p.calls, call) {
		return false, stock.ErrLapsed
	}
	p.ends = m.now + leaseHours
	return p.sold, nil
}

func (m *model) cancel(item, buyer, id string, call int) error {
	s := m.at(item)
	if s == nil {
		return stock.ErrUnknown
	}
	p := s.buyers[buyer]
	if p == nil || p.id != id {
		return nil
	}
	if call != everybody {
		i := slices.Index(p.calls, call)
		if i < 0 {
			return nil
		}
		if p.calls = slices.Delete(p.calls, i, i+1); len(p.calls) > 0 {
			return nil
		}
	}
	s.left += p.quantity
	delete(s.buyers, buyer)
	return nil
}
