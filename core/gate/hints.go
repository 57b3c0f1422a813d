package gate

import (
	"context"
	"net/netip"
	"sync/atomic"

	"github.com/neap-go/neap/core/internal/background"
)

// watched is how many requests are looked at: the first of each gate, and the first of the
// process whose peers may be proxies.
const watched = 1000

var (
	proxyHint, twiceHint background.Hint

	looked    atomic.Int32                             // the peers that were looked at
	sharedNet = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598
)

// hintProxy warns if the peer is probably a proxy, whose clients all count as one.
func hintProxy(r Request, peer netip.Addr) {
	if proxyHint.Given() || looked.Load() >= watched {
		return
	}
	if !peer.IsPrivate() && !peer.IsLoopback() && !peer.IsLinkLocalUnicast() && !sharedNet.Contains(peer) {
		return
	}
	looked.Add(1)
	if len(r.Header(forwardedFor)) > 0 {
		proxyHint.Give("neap: a request from a private address has X-Forwarded-For, and no proxy is listed: " +
			"if a proxy sent it, all its clients count as one address; list it in gate.IPOptions.TrustedProxies")
	}
}

// twice warns if its gate decides twice about one request.
type twice struct{ admitted atomic.Int32 }

// counted says which request a gate has counted. Another request may have a context that was
// made from this one's.
type counted struct {
	method, path string
	peer         netip.AddrPort
}

func countedOf(r Request) counted { return counted{r.Method(), r.Path(), r.RemoteAddr()} }

// warn is called before the gate counts a request.
func (t *twice) warn(r Request) {
	if t.watches() && r.Context().Value(t) == countedOf(r) {
		twiceHint.Give("neap: one gate decides twice about one request, which then counts twice: mount the gate once", "route", r.Route())
	}
}

// mark is called with what the gate answers to a request that it has counted and admitted.
func (t *twice) mark(r Request, p Pass) Pass {
	if p.Reply == nil && t.watches() {
		t.admitted.Add(1)
		if p.Context == nil {
			p.Context = r.Context()
		}
		p.Context = context.WithValue(p.Context, t, countedOf(r))
	}
	return p
}

func (t *twice) watches() bool { return t.admitted.Load() < watched && !twiceHint.Given() }
