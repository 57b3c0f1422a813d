//go:build neap_upgrade

package upgrade

import (
	"time"

	"github.com/neap-go/neap/internal/upgrade/wire"
)

var lockScenarios = []scenario{
	{"lock", func(p *pair) {
		c := p.lock(30 * second)
		mine, theirs := p.named(c, "mine"), p.named(c, "theirs")
		first := p.want(p.one, "lock.acquire", mine)
		p.refused(p.two, "held", "lock.try", theirs)
		if a := p.want(p.two, "lock.inspect", c); !a.OK || a.N != 1 || a.Fence != first.Fence {
			p.Errorf("the lock as the %s sees it: got held %v, %d holds, fence %d, want held, 1 hold, fence %d", p.two.version, a.OK, a.N, a.Fence, first.Fence)
		}
		more := of(mine)
		more.For = 60 * second
		p.want(p.one, "lock.extend", more)
		p.want(p.one, "lock.release", of(mine))
		second := p.want(p.two, "lock.try", theirs)
		if second.Fence <= first.Fence {
			p.Errorf("fences: got %d by the %s after %d by the %s, want a larger one", second.Fence, p.two.version, first.Fence, p.one.version)
		}
		p.refused(p.one, "held", "lock.try", mine)
		p.want(p.two, "lock.release", of(theirs))
	}},
	{"lock-wakes", func(p *pair) {
		// By itself, a waiter asks again only after a minute. So the release wakes it.
		c := p.lock(30 * second)
		mine, theirs := p.named(c, "mine"), p.named(c, "theirs")
		first := p.want(p.one, "lock.acquire", mine)
		p.wakes(p.two, theirs, first.Fence, func() { p.want(p.one, "lock.release", of(mine)) })
	}},
	{"lock-of-an-owner-wakes", func(p *pair) {
		// Both releases count the holds of a record in which somebody else is in line.
		c := p.lock(30 * second)
		c.Conf.Owner = "checkout 17"
		other := c
		other.Conf.Owner = "checkout 18"
		mine, theirs := p.named(c, "mine"), p.named(c, "theirs")
		first := p.want(p.one, "lock.acquire", mine)
		p.want(p.two, "lock.try", theirs)
		p.wakes(p.spare(), p.named(other, "other"), first.Fence, func() {
			p.want(p.one, "lock.release", of(mine))
			p.refused(p.one, "held", "lock.try", p.named(other, "early"))
			p.want(p.two, "lock.release", of(theirs))
		})
	}},
	{"lock-renewed", func(p *pair) {
		c := p.lock(shortLease)
		mine, theirs := p.named(c, "mine"), p.named(c, "theirs")
		p.want(p.one, "lock.acquire", mine)
		for end := time.Now().Add(shortLease * 3 / 2 * time.Millisecond); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			p.refused(p.two, "held", "lock.try", theirs)
		}
		p.want(p.one, "lock.release", of(mine))
		p.want(p.two, "lock.try", theirs)
		p.want(p.two, "lock.release", of(theirs))
	}},
	{"lock-of-a-dead-process", func(p *pair) {
		c := p.lock(shortLease)
		crashed, mine, theirs := p.spare(), p.named(c, "mine"), p.named(c, "theirs")
		first := p.want(crashed, "lock.acquire", mine)
		p.refused(p.two, "held", "lock.try", theirs)
		crashed.kill()
		second := p.want(p.two, "lock.acquire", theirs)
		if second.Fence <= first.Fence {
			p.Errorf("fences: got %d after %d of a dead process, want a larger one", second.Fence, first.Fence)
		}
		p.want(p.two, "lock.release", of(theirs))
	}},
	{"lock-of-an-owner", func(p *pair) {
		c := p.lock(30 * second)
		c.Conf.Owner = "checkout 17"
		other := c
		other.Conf.Owner = "checkout 18"
		mine, theirs := p.named(c, "mine"), p.named(c, "theirs")
		first, second := p.want(p.one, "lock.acquire", mine), p.want(p.two, "lock.try", theirs)
		if first.Fence != second.Fence {
			p.Errorf("fences of one owner: got %d and %d, want the same", first.Fence, second.Fence)
		}
		p.want(p.one, "lock.release", of(mine))
		p.refused(p.one, "held", "lock.try", p.named(other, "other"))
		p.want(p.two, "lock.release", of(theirs))
		p.want(p.one, "lock.try", p.named(other, "other"))
		if a := p.want(p.two, "lock.force", c); !a.OK {
			p.Errorf("force by the %s: it found no lock, want that of the %s", p.two.version, p.one.version)
		}
		p.refused(p.one, "lost", "lock.release", of(p.named(other, "other")))
	}},
	{"once", func(p *pair) {
		c := p.lock(30 * second)
		base := time.Now().Truncate(time.Hour).UnixMilli()
		once := func(by *process, tick int64, how string, want bool) int64 {
			p.Helper()
			c.N, c.How = base+tick, how
			a := p.want(by, "lock.once", c)
			if a.OK != want {
				p.Errorf("tick %d, %s, by the %s: got ran %v, want %v", tick, how, by.version, a.OK, want)
			}
			return a.Fence
		}
		once(p.one, 0, "never", true)
		once(p.two, 0, "never", false)
		once(p.one, 0, "never", false)
		once(p.two, 1, "again", true)
		once(p.one, 1, "again", false)
		first := once(p.one, 2, "again, but fails", true)
		if second := once(p.two, 2, "again", true); second <= first {
			p.Errorf("fences of two runs of a tick: got %d and %d, want a larger one", first, second)
		}
		once(p.one, 2, "again", false)
	}},
}

// wakes has a caller wait for a lock that others hold, until they release it.
func (p *pair) wakes(by *process, caller wire.Call, fence int64, release func()) {
	p.Helper()
	got := make(chan wire.Answer, 1)
	go func() {
		call := caller
		call.Op = "lock.acquire"
		a, err := by.call(call)
		if err != nil {
			a.Word = err.Error()
		}
		got <- a
	}()
	// By then it waits for the release. If the machine is too slow for that, it finds the
	// lock free, and the test does not see whether it is woken.
	time.Sleep(2 * time.Second)
	select {
	case a := <-got:
		p.Fatalf("a lock of the %s: got %+v by the %s while it was held, want it to wait", p.one.version, a, by.version)
	default:
	}
	release()
	select {
	case a := <-got:
		if a.Word != "" || a.Fence <= fence {
			p.Errorf("the lock after its release: got %+v, want a fence above %d", a, fence)
		}
	case <-time.After(15 * time.Second):
		p.Fatalf("a release by the %s did not wake the %s within 15 s", p.one.version, by.version)
	}
	p.want(by, "lock.release", of(caller))
}

func (p *pair) lock(lease int64) wire.Call {
	c := wire.Call{Conf: wire.Conf{Name: "locks", Lease: lease, Wait: 90 * second, RetryDelay: 60 * second}, Key: p.key}
	if p.cluster { // there a release of the baseline is not heard by processes in line: they ask again
		c.Conf.RetryDelay = 5 * second
	}
	return c
}
