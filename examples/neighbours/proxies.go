package neighbours

import (
	"net/netip"

	"github.com/neap-go/neap/core/gate"
)

// BehindProxies is the key by the client's address behind nginx, Traefik and
// others that append to X-Forwarded-For. List the proxies' own addresses: with
// none, all clients share the proxy's key, and of a client in a network that is
// listed, what it writes into X-Forwarded-For is believed.
func BehindProxies(addrs ...string) gate.Key {
	proxies := make([]netip.Prefix, len(addrs))
	for i, addr := range addrs {
		proxies[i] = netip.MustParsePrefix(addr)
	}
	return gate.ByIP(&gate.IPOptions{TrustedProxies: proxies})
}
