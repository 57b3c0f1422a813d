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

// enter is that of the gate.
func (t *twice) enter(r Request, enter func(Request) Pass) Pass {
	if r.Context().Value(t) != nil {
		twiceHint.Give("neap: one gate decides twice about one request, which then counts twice: mount the gate once", "route", r.Route())
	}
	p := enter(r)
	if p.Reply == nil {
		t.admitted.Add(1)
		if p.Context == nil {
			p.Context = r.Context()
		}
		p.Context = context.WithValue(p.Context, t, true)
	}
	return p
}

func (t *twice) watches() bool { return t.admitted.Load() < watched && !twiceHint.Given() }
