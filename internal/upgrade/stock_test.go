//go:build neap_upgrade

package upgrade

import (
	"slices"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

var stockScenarios = []scenario{
	{"stock", func(p *pair) {
		c := wire.Call{Conf: wire.Conf{Name: "sale", Lease: 60 * second}, Key: p.key}
		open := c
		open.N, open.For = 10, day
		if a := p.want(p.one, "stock.open", open); !a.OK {
			p.Errorf("opening an item: got that it is open already, want it opened")
		}
		if a := p.want(p.two, "stock.open", open); a.OK {
			p.Errorf("opening an item of the %s again: the %s opened it, want it to be open already", p.one.version, p.two.version)
		}
		ann, bob, eve := p.buyer(c, "ann", 3), p.buyer(c, "bob the second, whose name is hashed", 2), p.buyer(c, "eve", 1)
		p.want(p.one, "stock.reserve", ann)
		p.level(p.two, c, 10, 7, 3, 0)
		if a := p.want(p.two, "stock.reserve", ann); !a.OK {
			p.Errorf("the same order to the %s: got a new reservation, want that of the %s again", p.two.version, p.one.version)
		}
		other := ann
		other.Order = "another order"
		p.refused(p.two, "yours", "stock.reserve", other)

		p.want(p.two, "stock.reserve", bob)
		p.want(p.one, "stock.renew", of(ann))
		resumed := bob
		resumed.As = bob.As + " resumed"
		p.want(p.one, "stock.resume", resumed)
		p.want(p.one, "stock.confirm", of(resumed))
		p.level(p.two, c, 10, 5, 3, 2)
		p.want(p.two, "stock.confirm", of(bob))

		sold := eve
		sold.How = "sell"
		p.want(p.one, "stock.reserve", sold)
		p.want(p.two, "stock.confirm", of(ann))
		p.level(p.one, c, 10, 4, 0, 6)
		p.same(c)

		more := c
		more.N, more.Order = 5, "delivery-1"
		p.want(p.one, "stock.restock", more)
		p.want(p.two, "stock.restock", more) // the same delivery
		p.level(p.two, c, 15, 9, 0, 6)
		p.refused(p.two, "sold out", "stock.reserve", p.buyer(c, "dan", 10))

		gus := p.buyer(c, "gus", 4)
		p.want(p.one, "stock.reserve", gus)
		resumed = gus
		resumed.As = gus.As + " resumed"
		p.want(p.two, "stock.resume", resumed)
		p.want(p.two, "stock.cancel", of(resumed))
		p.refused(p.one, "lapsed", "stock.renew", of(gus))
		p.level(p.one, c, 15, 9, 0, 6)
	}},
	{"stock-of-a-dead-process", func(p *pair) {
		c := wire.Call{Conf: wire.Conf{Name: "sale", Lease: shortLease}, Key: p.key}
		open := c
		open.N, open.For = 5, day
		p.want(p.one, "stock.open", open)
		crashed := p.spare()
		p.want(crashed, "stock.reserve", p.buyer(c, "ann", 5))
		p.refused(p.two, "sold out", "stock.reserve", p.buyer(c, "bob", 1))
		crashed.kill()
		bob := p.buyer(c, "bob", 5)
		bob.Op = "stock.reserve"
		p.awaits("units of a dead process back", func() bool {
			a := p.two.ask(p, bob)
			if a.Word != "" && a.Word != "sold out" {
				p.Fatalf("units of a dead process: got the error %q (%s), want none or sold out", a.Word, a.Text)
			}
			return a.Word == ""
		})
		p.level(p.one, c, 5, 0, 5, 0)
		late := p.buyer(c, "ann", 5)
		late.As += " late"
		p.want(p.one, "stock.resume", late)
		p.refused(p.one, "lapsed", "stock.confirm", of(late))
	}},
}

// buyer is a call about a reservation, which has the buyer's name in each process.
func (p *pair) buyer(c wire.Call, name string, n int64) wire.Call {
	c.Buyer, c.Order, c.N = name, "order of "+name, n
	return p.named(c, name)
}

// level ends the scenario unless there are as many units by that version.
func (p *pair) level(by *process, c wire.Call, units, left, held, sold int64) {
	p.Helper()
	want := []int64{units, left, held, sold}
	if a := p.want(by, "stock.left", c); !slices.Equal(a.Counts, want) {
		p.Fatalf("units, left, held and sold by the %s: got %v, want %v", by.version, a.Counts, want)
	}
}

// same ends the scenario unless both versions know the same buyers.
func (p *pair) same(c wire.Call) {
	p.Helper()
	one, two := p.want(p.one, "stock.buyers", c).Names, p.want(p.two, "stock.buyers", c).Names
	slices.Sort(one)
	slices.Sort(two)
	if len(one) == 0 || !slices.Equal(one, two) {
		p.Fatalf("buyers: got %q by the %s and %q by the %s, want the same and some", one, p.one.version, two, p.two.version)
	}
}
