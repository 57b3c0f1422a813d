// Package address reads the addresses that servers, proxies and middleware write.
package address

import (
	"net/netip"
	"strings"
)

// Parse reads an IP address with or without a port. An IPv6 address may stand in
// brackets without a port too, and may have a zone. The port is 0 where s has
// none.
func Parse(s string) (netip.AddrPort, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(addr, 0), true
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if inner, ok = strings.CutSuffix(inner, "]"); ok {
			addr, err := netip.ParseAddr(inner)
			return netip.AddrPortFrom(addr, 0), err == nil && addr.Is6()
		}
	}
	addrPort, err := netip.ParseAddrPort(s)
	return addrPort, err == nil
}
