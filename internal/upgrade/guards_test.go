//go:build neap_upgrade

package upgrade

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

var guardScenarios = []scenario{
	{"guard", func(p *pair) {
		for _, secret := range []bool{false, true} {
			c := p.guard(wire.Conf{Lease: 30 * second, Secret: secret})
			c.Print = "print-of-the-request"
			mine := p.named(c, fmt.Sprint("mine", secret))
			first := p.want(p.one, "guard.begin", mine)
			if first.OK || first.Attempt != 1 {
				p.Fatalf("a key that is new: got done %v, attempt %d, want a claim of the first attempt", first.OK, first.Attempt)
			}
			p.refused(p.two, "in flight", "guard.begin", c)
			p.want(p.one, "guard.renew", of(mine))
			if a := p.want(p.two, "guard.inspect", c); a.State != "pending" || a.Fence != first.Fence {
				p.Errorf("the record as the %s sees it: got %q, fence %d, want pending, %d", p.two.version, a.State, a.Fence, first.Fence)
			}
			result := some(5000)
			p.conclude(p.one, mine, "done", result)
			for _, by := range []*process{p.two, p.one} {
				if a := p.want(by, "guard.begin", c); !a.OK || !bytes.Equal(a.Bytes, result) {
					p.Errorf("the result by the %s: got done %v and %d bytes, want done and the same %d bytes", by.version, a.OK, len(a.Bytes), len(result))
				}
			}
			other := c
			other.Print = "print-of-another"
			p.refused(p.two, "mismatch", "guard.begin", other)
			if a := p.want(p.two, "guard.forget", c); !a.OK {
				p.Errorf("forget by the %s: it found nothing, want the record of the %s", p.two.version, p.one.version)
			}
		}
	}},
	{"guard-sealed", func(p *pair) {
		before, after := p.guard(wire.Conf{Seals: []string{"k1"}}), p.guard(wire.Conf{Seals: []string{"k2", "k1"}})
		mine := p.named(before, "mine")
		p.want(p.one, "guard.begin", mine)
		result := some(100)
		p.conclude(p.one, mine, "done", result)
		if a := p.want(p.two, "guard.begin", after); !a.OK || !bytes.Equal(a.Bytes, result) {
			p.Errorf("a sealed result by the %s: got done %v, %q, want done, %q", p.two.version, a.OK, a.Bytes, result)
		}
		p.refused(p.two, "unreadable", "guard.begin", p.guard(wire.Conf{Seals: []string{"k3"}}))
	}},
	{"guard-waits", func(p *pair) {
		c := p.guard(wire.Conf{Lease: 30 * second, Wait: 90 * second, RetryDelay: 50})
		mine := p.named(c, "mine")
		p.want(p.one, "guard.begin", mine)
		got := make(chan wire.Answer, 1)
		go func() {
			call := p.named(c, "theirs")
			call.Op = "guard.await"
			a, err := p.two.call(call)
			if err != nil {
				a.Word = err.Error()
			}
			got <- a
		}()
		result := some(10)
		p.conclude(p.one, mine, "done", result)
		if a := <-got; a.Word != "" || !a.OK || !bytes.Equal(a.Bytes, result) {
			p.Errorf("await by the %s: got %q, done %v, %q, want done, %q", p.two.version, a.Word, a.OK, a.Bytes, result)
		}
	}},
	{"guard-of-a-dead-process", func(p *pair) {
		c := p.guard(wire.Conf{Lease: shortLease, Wait: 90 * second, RetryDelay: 50})
		crashed, theirs := p.spare(), p.named(c, "theirs")
		first := p.want(crashed, "guard.begin", p.named(c, "mine"))
		p.refused(p.two, "in flight", "guard.begin", c)
		crashed.kill()
		second := p.want(p.two, "guard.await", theirs)
		if second.OK || second.Attempt != 2 || second.Fence <= first.Fence {
			p.Errorf("a dead run: got done %v, attempt %d, fence %d, want a claim of attempt 2 and a fence above %d", second.OK, second.Attempt, second.Fence, first.Fence)
		}
		p.conclude(p.two, theirs, "nothing", nil)
		third := p.named(c, "third")
		if a := p.want(p.one, "guard.begin", third); a.OK || a.Fence <= second.Fence {
			p.Errorf("a key that is free again: got done %v, fence %d, want a claim and a fence above %d", a.OK, a.Fence, second.Fence)
		}
		p.conclude(p.one, third, "done without", nil)
		p.refused(p.two, "no result", "guard.begin", c)
	}},
	{"guard-in-doubt", func(p *pair) {
		for _, how := range []string{"reject", "reconcile"} {
			c := p.guard(wire.Conf{Name: how, Lease: 30 * second, InDoubt: how})
			mine := p.named(c, "mine "+how)
			p.want(p.one, "guard.begin", mine)
			p.conclude(p.one, mine, "unknown", nil)
			if a := p.want(p.two, "guard.inspect", c); a.State != "in doubt" {
				p.Errorf("the record as the %s sees it: got %q, want in doubt", p.two.version, a.State)
			}
			if how == "reconcile" {
				if a := p.want(p.two, "guard.begin", p.named(c, "theirs")); a.OK || a.Attempt != 2 {
					p.Errorf("a reconciled key by the %s: got done %v, attempt %d, want a claim of attempt 2", p.two.version, a.OK, a.Attempt)
				}
				continue
			}
			p.refused(p.two, "in doubt", "guard.begin", c)
			c.How, c.Bytes = "done", []byte("found out")
			p.want(p.two, "guard.resolve", c)
			if a := p.want(p.one, "guard.begin", c); !a.OK || string(a.Bytes) != "found out" {
				p.Errorf("what the %s resolved: got done %v, %q by the %s, want done, %q", p.two.version, a.OK, a.Bytes, p.one.version, "found out")
			}
		}
	}},
	{"http", func(p *pair) {
		c := wire.Call{Conf: wire.Conf{Name: "orders"}, Key: p.key, Buyer: "ann", Print: "two phones", Order: "17", Bytes: some(3000)}
		first := p.want(p.one, "http.post", c)
		if !first.OK || first.N != 201 {
			p.Fatalf("a request: got ran %v, %d, want ran, 201", first.OK, first.N)
		}
		again := c
		again.Bytes, again.Order = []byte("another answer"), "18"
		second := p.want(p.two, "http.post", again)
		replayed := second.Header["Idempotent-Replayed"]
		delete(second.Header, "Idempotent-Replayed")
		delete(second.Header, "Content-Length") // of a replay the gate knows it; of the first the server adds it
		if second.OK || second.N != first.N || !bytes.Equal(second.Bytes, first.Bytes) || !reflect.DeepEqual(second.Header, first.Header) || len(replayed) != 1 {
			p.Errorf("the same request to the %s: got ran %v, %d, %d bytes, %v, replayed %v, want the answer of the %s, %d, %d bytes, %v",
				p.two.version, second.OK, second.N, len(second.Bytes), second.Header, replayed, p.one.version, first.N, len(first.Bytes), first.Header)
		}
		other := c
		other.Print = "three phones"
		if a := p.want(p.two, "http.post", other); a.OK || a.N != 422 {
			p.Errorf("another body under the same key: got ran %v, %d, want 422", a.OK, a.N)
		}
		other.Buyer = "bob"
		if a := p.want(p.two, "http.post", other); !a.OK || a.N != 201 {
			p.Errorf("the same key of another user: got ran %v, %d, want ran, 201", a.OK, a.N)
		}
	}},
	{"callback", func(p *pair) {
		c := wire.Call{Conf: wire.Conf{Name: "callbacks"}, Bytes: []byte(`{"repository":{"full_name":"neap/` + strings.ReplaceAll(p.key, " ", "-") + `"}}`)}
		first := p.want(p.one, "callback.send", c)
		if !first.OK || first.N/100 != 2 || first.Attempt != 1 {
			p.Fatalf("a delivery: got ran %v, %d, attempt %d, want ran, 2xx, 1", first.OK, first.N, first.Attempt)
		}
		if a := p.want(p.two, "callback.send", c); a.OK || a.N != first.N {
			p.Errorf("the same delivery to the %s: got ran %v, %d, want %d without a run", p.two.version, a.OK, a.N, first.N)
		}
	}},
}

// guard is a call of a guard. Its Wait is above the default only where a scenario says so.
func (p *pair) guard(conf wire.Conf) wire.Call {
	conf.Name = "guards" + conf.Name
	return wire.Call{Conf: conf, Key: p.key}
}

func (p *pair) conclude(by *process, claim wire.Call, how string, result []byte) {
	p.Helper()
	c := of(claim)
	c.How, c.Bytes = how, result
	p.want(by, "guard.conclude", c)
}
