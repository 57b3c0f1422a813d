package gate

import (
	"context"
	"fmt"
	"iter"
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
	// TrustedHops is how many proxies in a row each request comes through, if you do not
	// know their addresses. Each of them must append the address that it was called from.
	// The client is then the element of X-Forwarded-For with this number, counted from the
	// right: with 1, the last one. Zero means that the two fields above decide.
	//
	// This is safe only if nothing can reach the process past any of the proxies, and no
	// way to it has more or fewer of them. ByIP believes every peer. With a number that is
	// too large, or past a proxy, a client chooses its own address. With one that is too
	// small, all clients of a proxy share its key. So list the proxies if you can.
	TrustedHops int
	// FromContext returns the client's address that other middleware has found and stored
	// in the request's context, and the zero Addr if there is none. With chi it is
	// middleware.GetClientIPAddr. The address replaces the peer, and the gate reads no
	// header. So none of the three fields above may be set together with it. With nil,
	// ByIP uses the peer and the trusted proxies.
	FromContext func(context.Context) netip.Addr
	// IPv4Prefix is how many leading bits of an IPv4 address make the key, 1 to 32. Zero
	// means 32, each address by itself. With 24, the addresses of a /24 share a key.
	IPv4Prefix int
	// IPv6Prefix is how many leading bits of an IPv6 address make the key, 1 to 128. Zero
	// means 64, the least that a customer gets. A customer could change its address
	// within such a network at will, so a limit on single addresses would limit no client.
	IPv6Prefix int
}

// ByIP is the key of the client's address: that of the peer, the one that trusted proxies
// report, or the one that other middleware has found. The key is "ip=" and the address, or
// for IPv6 its network of 64 bits (IPv4Prefix and IPv6Prefix of [IPOptions]).
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
// With TrustedHops, ByIP reads the same list and counts elements instead, whatever they
// are. It skips empty ones here, too.
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
//   - TrustedHops is set, and X-Forwarded-For has fewer elements. So a number that is too
//     large fails with the first request of an honest client.
//
// In these cases the request is refused with a 400:
//
//   - TrustUnixSocket trusts the peer, and its X-Forwarded-For has no address.
//   - TrustedHops is set, and the element that it counts to is not an address.
//   - The peer is trusted, and a trailer may have brought its X-Forwarded-For.
//
// ByIP panics on an invalid prefix, on 64:ff9b::/96 and ::ffff:0:0/96, on an IPv4Prefix
// over 32 or an IPv6Prefix over 128, on negative numbers, and on two ways to find the
// client: FromContext, TrustedHops, or TrustedProxies and TrustUnixSocket. Nil options are
// the defaults.
func ByIP(opts *IPOptions) Key {
	if opts == nil {
		opts = &IPOptions{}
	}
	find := opts.mustFind()
	v4, v6 := mustBits("IPv4Prefix", opts.IPv4Prefix, 32, 32), mustBits("IPv6Prefix", opts.IPv6Prefix, 64, 128)
	return func(r Request) (string, error) {
		addr, err := find(r)
		if err != nil {
			return "", err
		}
		if addr.Is4() {
			return writeIP(addr, v4), nil
		}
		return writeIP(addr, v6), nil
	}
}

func mustBits(field string, bits, otherwise, most int) int {
	switch {
	case bits == 0:
		return otherwise
	case bits < 0 || bits > most:
		panic(fmt.Sprintf("gate.ByIP: IPOptions.%s is %d; it is 1 to %d bits, or 0 for %d", field, bits, most, otherwise))
	}
	return bits
}

// mustFind returns the function that finds the client's address, in its plain form.
func (o *IPOptions) mustFind() func(Request) (netip.Addr, error) {
	listed := len(o.TrustedProxies) > 0 || o.TrustUnixSocket
	switch {
	case o.TrustedHops < 0:
		panic(fmt.Sprintf("gate.ByIP: IPOptions.TrustedHops is %d; it is how many proxies are in front, or 0 if TrustedProxies lists them", o.TrustedHops))
	case o.FromContext != nil && (listed || o.TrustedHops > 0):
		panic("gate.ByIP: IPOptions.FromContext reads no X-Forwarded-For; tell the middleware that stores the address which proxies to trust, and leave TrustedProxies, TrustUnixSocket and TrustedHops empty")
	case o.TrustedHops > 0 && listed:
		panic("gate.ByIP: IPOptions.TrustedHops believes every peer, also one on a unix socket, so TrustedProxies and TrustUnixSocket would have no effect; leave out TrustedHops if you can list the proxies, and the others if you cannot")
	case o.FromContext != nil:
		return stored(o.FromContext)
	case o.TrustedHops > 0:
		return atHop(o.TrustedHops)
	}
	return reported(mustProxies(o), !listed)
}

// stored returns the address that other middleware has found.
func stored(find func(context.Context) netip.Addr) func(Request) (netip.Addr, error) {
	return func(r Request) (netip.Addr, error) {
		addr := find(r.Context())
		if of, ok := r.(*valued); ok && !addr.IsValid() {
			addr = of.v.Addr
		}
		if addr = plain(addr); addr.IsValid() {
			return addr, nil
		}
		if err := lacks(r, "ByIP", "Addr"); err != nil {
			return addr, err
		}
		return addr, fmt.Errorf("%w: ByIP: IPOptions.FromContext found no address; mount the middleware that stores it outside the gate", ErrWiring)
	}
}

// reported returns the address of the peer, or the one that trusted proxies report.
func reported(from proxies, unlisted bool) func(Request) (netip.Addr, error) {
	return func(r Request) (netip.Addr, error) {
		addr := from.client(r)
		if unlisted {
			hintProxy(r, addr)
		}
		switch {
		case from.trust(plain(r.RemoteAddr().Addr())) && unsure(r, forwardedFor):
			return addr, errTrailer
		case addr.IsValid():
			return addr, nil
		case from.unix && len(r.Header(forwardedFor)) > 0:
			return addr, errNoAddress
		}
		if err := lacks(r, "ByIP", "Addr"); err != nil {
			return addr, err
		}
		return addr, fmt.Errorf("%w: ByIP: the peer of the request has no IP address, and no trusted proxy reports the client's; either the request came over a unix socket (see IPOptions.TrustUnixSocket), or middleware replaced the peer's address with something else", ErrWiring)
	}
}

// atHop returns the address that the n-th proxy was called from. The proxies are counted from this
// server on.
func atHop(n int) func(Request) (netip.Addr, error) {
	return func(r Request) (netip.Addr, error) {
		if of, ok := r.(*valued); ok {
			if addr := plain(of.v.Addr); addr.IsValid() {
				return addr, nil
			}
			return netip.Addr{}, lacks(r, "ByIP", "Addr")
		}
		if unsure(r, forwardedFor) {
			return netip.Addr{}, errTrailer
		}
		left := n
		for hop := range forwarded(r) {
			if left--; left > 0 {
				continue
			}
			if addr, ok := address.Parse(hop); ok {
				return plain(addr.Addr()), nil
			}
			return netip.Addr{}, errNoAddress
		}
		return netip.Addr{}, fmt.Errorf("%w: ByIP: X-Forwarded-For has %d elements, and IPOptions.TrustedHops is %d; either a request came past a proxy, or fewer proxies than that append to the field", ErrWiring, n-left, n)
	}
}

var errNoAddress = Refuse(400, "The request's X-Forwarded-For names no address")

func writeIP(addr netip.Addr, bits int) string {
	text := append(make([]byte, 0, 64), "ip="...)
	if bits == addr.BitLen() {
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
	for hop := range forwarded(r) {
		addr, ok := address.Parse(hop)
		if !ok {
			return client
		}
		client = plain(addr.Addr())
		if !p.trust(client) {
			return client
		}
	}
	return client
}

// forwarded are the elements of X-Forwarded-For from the right, without the empty ones (RFC 9110
// section 5.6.1.2).
func forwarded(r Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range slices.Backward(r.Header(forwardedFor)) {
			for rest, more := line, true; more; {
				var hop string
				if rest, hop, more = cutLast(rest); hop != "" && !yield(hop) {
					return
				}
			}
		}
	}
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
