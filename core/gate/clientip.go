package gate

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/neap-go/neap/internal/address"
)

// IPOptions are the options of [ByIP].
type IPOptions struct {
	// TrustedProxies are the addresses of the reverse proxies and load balancers in front
	// of the server. ByIP believes the X-Forwarded-For of these peers only. Each of them
	// must append the address that it was called from. None means that no header is
	// believed. IPv4 and IPv6 are separate: 0.0.0.0/0 contains no IPv6 address.
	TrustedProxies []netip.Prefix
	// TrustUnixSocket believes X-Forwarded-For from every peer on a unix socket. Such a
	// peer has no address to list.
	TrustUnixSocket bool
	// FromContext returns the client's address that other middleware has found and stored
	// in the request's context, and the zero Addr if there is none. With chi it is
	// middleware.GetClientIPAddr. The address replaces the peer, and the gate reads no
	// header. So neither of the two fields above may be set together with it. With nil,
	// ByIP uses the peer and the trusted proxies.
	FromContext func(context.Context) netip.Addr
	// IPv6Prefix is how many leading bits of an IPv6 address make the key, 1 to 128. Zero
	// means 64, the least that a customer gets. A customer could change its address
	// within such a network at will, so a limit on single addresses would limit no client.
	IPv6Prefix int
}

// ByIP is the key of the client's address: that of the peer, the one that trusted proxies
// report, or the one that other middleware has found. The key is "ip=" and the address, or
// for IPv6 its network of 64 bits (IPv6Prefix of [IPOptions]).
//
// An IPv4 address counts the same in every notation: also as IPv6-mapped, and as
// translated by NAT64 under 64:ff9b::/96 (RFC 6052).
//
// If the peer is one of the trusted proxies, ByIP reads all lines of X-Forwarded-For as
// one list. It reads from the right, where the nearest proxy wrote, up to the first
// address that is not trusted: that is the client. The client may have made up everything
// to the left of it. If all addresses are trusted, the leftmost is the client. ByIP drops
// ports and zones and skips empty elements. If an element is not an address, the element
// to the right of it counts as the client. That is a proxy that is known to have passed
// the request on, so such requests share the key of this proxy.
//
// Middleware that overwrites the peer's address, such as chi's RealIP, may write it with
// or without a port. ByIP believes such middleware. Most of it believes headers that any
// client can send.
//
// In these cases the answer is a 500 and the hook is told ([ErrWiring]):
//
//   - TrustUnixSocket is not set, and the request came over a unix socket, or middleware
//     replaced the peer with something that is no IP address.
//   - TrustUnixSocket is set, and such a request has no X-Forwarded-For.
//   - FromContext is set and finds no address.
//
// In these cases the request is refused with a 400:
//
//   - TrustUnixSocket trusts the peer, and its X-Forwarded-For has no address.
//   - The peer is trusted, and a trailer may have brought its X-Forwarded-For.
//
// ByIP panics on an invalid prefix, on 64:ff9b::/96 and ::ffff:0:0/96, on an IPv6Prefix
// over 128, and on FromContext together with TrustedProxies or TrustUnixSocket. Nil
// options are the defaults.
func ByIP(opts *IPOptions) Key {
	if opts == nil {
		opts = &IPOptions{}
	}
	from := mustProxies(opts)
	bits := opts.IPv6Prefix
	if bits == 0 {
		bits = 64
	}
	if bits < 1 || bits > 128 {
		panic(fmt.Sprintf("gate.ByIP: IPOptions.IPv6Prefix is %d; it is 1 to 128 bits, or 0 for 64", bits))
	}
	if find := opts.FromContext; find != nil {
		if len(opts.TrustedProxies) > 0 || opts.TrustUnixSocket {
			panic("gate.ByIP: IPOptions.FromContext reads no X-Forwarded-For; tell the middleware that stores the address which proxies to trust, and leave TrustedProxies and TrustUnixSocket empty")
		}
		return func(r Request) (string, error) {
			addr := find(r.Context())
			if of, ok := r.(*valued); ok && !addr.IsValid() {
				addr = of.v.Addr
			}
			if addr = plain(addr); addr.IsValid() {
				return writeIP(addr, bits), nil
			}
			if err := lacks(r, "ByIP", "Addr"); err != nil {
				return "", err
			}
			return "", fmt.Errorf("%w: ByIP: IPOptions.FromContext found no address; mount the middleware that stores it outside the gate", ErrWiring)
		}
	}
	unlisted := len(opts.TrustedProxies) == 0 && !opts.TrustUnixSocket
	return func(r Request) (string, error) {
		addr := from.client(r)
		if unlisted {
			hintProxy(r, addr)
		}
		switch {
		case from.trust(plain(r.RemoteAddr().Addr())) && unsure(r, forwardedFor):
			return "", errTrailer
		case addr.IsValid():
			return writeIP(addr, bits), nil
		case from.unix && len(r.Header(forwardedFor)) > 0:
			return "", Refuse(400, "The request's X-Forwarded-For names no address")
		}
		if err := lacks(r, "ByIP", "Addr"); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: ByIP: the peer of the request has no IP address, and no trusted proxy reports the client's; either the request came over a unix socket (see IPOptions.TrustUnixSocket), or middleware replaced the peer's address with something else", ErrWiring)
	}
}

func writeIP(addr netip.Addr, bits int) string {
	text := append(make([]byte, 0, 64), "ip="...)
	if addr.Is4() || bits == addr.BitLen() {
		return string(addr.AppendTo(text))
	}
	return string(netip.PrefixFrom(addr, bits).Masked().AppendTo(text))
}

const forwardedFor = "X-Forwarded-For"

// proxies are the peers whose X-Forwarded-For is believed.
type proxies struct {
	trusted []netip.Prefix
	unix    bool
}

func mustProxies(opts *IPOptions) proxies {
	p := proxies{trusted: slices.Clone(opts.TrustedProxies), unix: opts.TrustUnixSocket}
	for i, prefix := range p.trusted {
		plain, fault := plainPrefix(prefix)
		if fault != "" {
			panic(fmt.Sprintf("gate.ByIP: IPOptions.TrustedProxies[%d] is %s, %s", i, prefix, fault))
		}
		p.trusted[i] = plain
	}
	return p
}

// plainPrefix returns a prefix in the plain form of its addresses, in which they are
// compared. fault says what is wrong with the prefix, if anything is.
func plainPrefix(prefix netip.Prefix) (_ netip.Prefix, fault string) {
	if addr := plain(prefix.Addr()); addr.Is4() && prefix.Bits() >= 96 {
		if prefix.Bits() == 96 {
			return prefix, "which is every IPv4 address; list those that are meant, or 0.0.0.0/0 if all are"
		}
		prefix = netip.PrefixFrom(addr, prefix.Bits()-96)
	}
	if !prefix.IsValid() || prefix.Addr().Is4In6() {
		return prefix, "no prefix of IPv4 or IPv6 addresses; write one like 10.0.0.0/8"
	}
	return prefix, ""
}

// client returns the client's address, or the zero Addr if no trusted peer reports one.
func (p proxies) client(r Request) netip.Addr {
	client := plain(r.RemoteAddr().Addr())
	if !p.trust(client) {
		return client
	}
	lines := r.Header(forwardedFor)
	for _, line := range slices.Backward(lines) {
		for rest, more := line, true; more; {
			var hop string
			rest, hop, more = cutLast(rest)
			if hop == "" {
				continue
			}
			addr, ok := address.Parse(hop)
			if !ok {
				return client
			}
			client = plain(addr.Addr())
			if !p.trust(client) {
				return client
			}
		}
	}
	return client
}

func (p proxies) trust(addr netip.Addr) bool {
	if !addr.IsValid() {
		return p.unix
	}
	return slices.ContainsFunc(p.trusted, func(prefix netip.Prefix) bool { return prefix.Contains(addr) })
}

// cutLast cuts the last element off a comma-separated list.
func cutLast(list string) (rest, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	return list[:max(i, 0)], strings.Trim(list[i+1:], " \t"), i >= 0
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// plain returns the one form in which an address is compared and written.
func plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		b := addr.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr
}
