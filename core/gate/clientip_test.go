package gate_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/internal/iptable"
)

func TestByIPTable(t *testing.T) {
	t.Parallel()
	cases := iptable.Cases()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			r := with("X-Forwarded-For", c.Lines...)
			r.peer = c.Peer
			got, err := gate.ByIP(c.Options)(r)
			switch {
			case c.Status == 500:
				if !errors.Is(err, gate.ErrWiring) {
					t.Errorf("got %q, %v, want an error of wiring", got, err)
				}
			case c.Status != 0:
				if err == nil || errors.Is(err, gate.ErrWiring) {
					t.Errorf("got %q, %v, want a refusal", got, err)
				}
			case err != nil || got != c.Want:
				t.Errorf("got %q, %v, want %q", got, err, c.Want)
			}
		})
	}
	replayed := slices.DeleteFunc(cases, func(c iptable.Case) bool { return !c.Loopback() })
	if len(replayed) < 30 {
		t.Errorf("%d cases can be replayed over connections, want at least 30", len(replayed))
	}
}

func TestByIPIgnoresOtherHeaders(t *testing.T) {
	t.Parallel()
	key := gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	for _, name := range []string{"X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip", "X-Forwarded-Host"} {
		r := with(name, "203.0.113.9")
		r.peer = netip.MustParseAddrPort("127.0.0.1:1")
		if got, err := key(r); err != nil || got != "ip=127.0.0.1" {
			t.Errorf("%s: got %q, %v, want \"ip=127.0.0.1\"", name, got, err)
		}
	}
}

func TestByIPCopiesItsOptions(t *testing.T) {
	t.Parallel()
	opts := &gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	key := gate.ByIP(opts)
	opts.TrustedProxies[0] = netip.MustParsePrefix("10.0.0.0/8")
	opts.IPv6Prefix, opts.IPv4Prefix, opts.TrustedHops = 999, 8, 2
	r := with("X-Forwarded-For", "203.0.113.9")
	r.peer = netip.MustParseAddrPort("127.0.0.1:1")
	if got, err := key(r); err != nil || got != "ip=203.0.113.9" {
		t.Errorf("got %q, %v, want \"ip=203.0.113.9\" by the options as they were", got, err)
	}
}

// What a client writes into X-Forwarded-For stands to the left of what the nearest proxy
// appends, and must change nothing.
func FuzzByIPForgery(f *testing.F) {
	for _, c := range iptable.Cases() {
		f.Add(strings.Join(c.Lines, "\n"), c.Peer.Addr().String())
	}
	key := gate.ByIP(&gate.IPOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	direct := gate.ByIP(nil)
	f.Fuzz(func(t *testing.T, forged, real string) {
		addr, err := netip.ParseAddr(real)
		if err != nil || addr.Unmap().IsLoopback() || strings.ContainsAny(addr.Zone(), ", \t") { // which no list can have
			t.Skip()
		}
		fromProxy := &request{
			peer:   netip.MustParseAddrPort("127.0.0.1:1"),
			header: map[string][]string{"X-Forwarded-For": append(strings.Split(forged, "\n"), addr.String())},
		}
		byItself := with("X-Forwarded-For", strings.Split(forged, "\n")...)
		byItself.peer = netip.AddrPortFrom(addr, 1)
		got, err := key(fromProxy)
		want, wantErr := direct(byItself)
		if err != nil || wantErr != nil || got != want {
			t.Errorf("got %q, %v through the proxy, want %q, %v as directly", got, err, want, wantErr)
		}
		if _, err := key(with("X-Forwarded-For", forged)); err == nil {
			t.Error("a peer on a unix socket: got no error, want one")
		}
		plain := with("X-Forwarded-For", forged)
		plain.peer = netip.MustParseAddrPort("192.0.2.66:1")
		if got, err := key(plain); err != nil || got != "ip=192.0.2.66" {
			t.Errorf("an untrusted peer: got %q, %v, want \"ip=192.0.2.66\"", got, err)
		}
	})
}

// With TrustedHops, what stands to the left of the elements that the proxies append changes
// nothing.
func FuzzByIPHops(f *testing.F) {
	for _, c := range iptable.Cases() {
		f.Add(strings.Join(c.Lines, "\n"), "10.0.0.7", uint8(len(c.Lines)), len(c.Name)%2 == 0)
	}
	f.Fuzz(func(t *testing.T, forged, inner string, more uint8, appends bool) {
		if strings.Trim(inner, " \t") == "" || strings.Contains(inner, ",") {
			t.Skip() // no proxy writes such an element
		}
		proxies := []string{"203.0.113.9"}
		for range more % 8 {
			proxies = append(proxies, inner)
		}
		lines := append(strings.Split(forged, "\n"), proxies...)
		if appends {
			lines = []string{strings.Join(lines, ", ")}
		}
		key := gate.ByIP(&gate.IPOptions{TrustedHops: len(proxies)})
		if got, err := key(with("X-Forwarded-For", lines...)); err != nil || got != "ip=203.0.113.9" {
			t.Errorf("%q behind %d hops: got %q, %v, want the address that the first proxy was called from", lines, len(proxies), got, err)
		}
	})
}

type addrKey struct{}

// addrIn reads the address that middleware such as chi's ClientIPFromXFF has stored.
func addrIn(ctx context.Context) netip.Addr {
	addr, _ := ctx.Value(addrKey{}).(netip.Addr)
	return addr
}

func noAddr(context.Context) netip.Addr { return netip.Addr{} }

// FromContext decides alone: with it, neither the peer nor a header counts.
func TestByIPFromContext(t *testing.T) {
	t.Parallel()
	for stored, want := range map[netip.Addr]string{
		netip.MustParseAddr("203.0.113.9"):          "ip=203.0.113.9",
		netip.MustParseAddr("::ffff:203.0.113.9"):   "ip=203.0.113.9",
		netip.MustParseAddr("64:ff9b::cb00:7109"):   "ip=203.0.113.9",
		netip.MustParseAddr("2001:db8:1:2:3::1"):    "ip=2001:db8:1::/48",
		netip.MustParseAddr("2001:db8:1:2::1%eth0"): "ip=2001:db8:1::/48",
	} {
		for _, peer := range []string{"127.0.0.1:1", "192.0.2.66:1"} {
			r := with("X-Forwarded-For", "198.51.100.1")
			r.peer = netip.MustParseAddrPort(peer)
			r.ctx = context.WithValue(t.Context(), addrKey{}, stored)
			if got, err := gate.ByIP(&gate.IPOptions{FromContext: addrIn, IPv6Prefix: 48})(r); err != nil || got != want {
				t.Errorf("%s is stored: got %q, %v, want %q", stored, got, err, want)
			}
		}
	}
	r := with("X-Forwarded-For", "198.51.100.1")
	r.peer = netip.MustParseAddrPort("127.0.0.1:1")
	if got, err := gate.ByIP(&gate.IPOptions{FromContext: addrIn})(r); !errors.Is(err, gate.ErrWiring) || !strings.Contains(err.Error(), "FromContext") {
		t.Errorf("nothing is stored: got %q, %v, want an error of wiring that names FromContext", got, err)
	}
}
