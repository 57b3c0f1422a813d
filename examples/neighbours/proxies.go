package neighbours

import (
	"net/netip"

	"github.com/neap-go/neap/core/gate"
)

// BehindProxies is the key by the client's address behind nginx, Traefik and
// others that append to X-Forwarded-For. List the networks of the proxies alone, such
// as "192.0.2.1/32". If you list none, all clients share the proxy's key. A client in
// a network that you list chooses its own key, by what it writes into X-Forwarded-For.
// BehindProxies panics if an address is no such prefix.
func BehindProxies(addrs ...string) gate.Key {
	proxies := make([]netip.Prefix, len(addrs))
	for i, addr := range addrs {
		proxies[i] = netip.MustParsePrefix(addr)
	}
	return gate.ByIP(&gate.IPOptions{TrustedProxies: proxies})
}
