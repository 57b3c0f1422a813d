// Package iptable is the table of who the client of a request is, for the tests
// of core/gate, which reach every peer, and for the contract suite of the
// adapters, which sends the same headers over real connections.
package iptable

import (
	"net/netip"

	"github.com/neap-go/neap/core/gate"
)

// Case is one topology: a request from Peer whose X-Forwarded-For has Lines.
// Want is the subject that gate.ByIP makes of it; with Status, it makes none,
// and the request is answered with that status.
type Case struct {
	Name    string
	Options *gate.IPOptions
	Peer    netip.AddrPort
	Lines   []string
	Want    string
	Status  int
}

// Loopback says whether the case can be replayed over a connection from
// 127.0.0.1.
func (c Case) Loopback() bool { return c.Peer == local }

var (
	local = netip.MustParseAddrPort("127.0.0.1:40000")
	unix  = netip.AddrPort{}
)

func peer(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func trust(prefixes ...string) *gate.IPOptions {
	opts := &gate.IPOptions{}
	for _, p := range prefixes {
		opts.TrustedProxies = append(opts.TrustedProxies, netip.MustParsePrefix(p))
	}
	return opts
}

func grouped(bits int, opts *gate.IPOptions) *gate.IPOptions {
	opts.IPv6Prefix = bits
	return opts
}

func groupedV4(bits int, opts *gate.IPOptions) *gate.IPOptions {
	opts.IPv4Prefix = bits
	return opts
}

func hops(n int) *gate.IPOptions { return &gate.IPOptions{TrustedHops: n} }

func overUnix(opts *gate.IPOptions) *gate.IPOptions {
	opts.TrustUnixSocket = true
	return opts
}

// Cases returns the table. The options are the caller's own.
func Cases() []Case {
	cases := append(fromLoopback(), counted()...)
	for i := range cases {
		cases[i].Peer = local
	}
	return append(cases, fromElsewhere()...)
}

func fromLoopback() []Case {
	one := func() *gate.IPOptions { return trust("127.0.0.1/32") }
	two := func() *gate.IPOptions { return trust("127.0.0.0/8", "10.0.0.0/8", "fd00::/8") }
	return []Case{
		{Name: "no header", Want: "ip=127.0.0.1"},
		{Name: "no proxy is trusted by default", Lines: []string{"203.0.113.9"}, Want: "ip=127.0.0.1"},
		{Name: "the peer is not the trusted proxy", Options: trust("10.0.0.0/8"), Lines: []string{"203.0.113.9"}, Want: "ip=127.0.0.1"},
		{Name: "a trusted proxy calls for itself", Options: one(), Want: "ip=127.0.0.1"},
		{Name: "one proxy", Options: one(), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "the client made up a hop", Options: one(), Lines: []string{"198.51.100.1, 203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "the client made up a trusted hop", Options: two(), Lines: []string{"10.1.1.1, 203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "two proxies", Options: two(), Lines: []string{"203.0.113.9, 10.0.0.7"}, Want: "ip=203.0.113.9"},
		{Name: "three proxies, one of IPv6", Options: two(), Lines: []string{"203.0.113.9, fd00::7, 10.0.0.7"}, Want: "ip=203.0.113.9"},
		{Name: "an untrusted hop in the middle", Options: two(), Lines: []string{"203.0.113.9, 192.0.2.66, 10.0.0.7"}, Want: "ip=192.0.2.66"},
		{Name: "a trusted hop beyond an untrusted one", Options: two(), Lines: []string{"203.0.113.9, 10.0.0.8, 192.0.2.66, 10.0.0.7"}, Want: "ip=192.0.2.66"},
		{Name: "all hops are trusted", Options: two(), Lines: []string{"10.0.0.9, 10.0.0.8, 10.0.0.7"}, Want: "ip=10.0.0.9"},
		{Name: "two lines are one list", Options: two(), Lines: []string{"203.0.113.9", "10.0.0.7"}, Want: "ip=203.0.113.9"},
		{Name: "the client sent a line before the proxy's", Options: one(), Lines: []string{"198.51.100.1", "203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "three lines of several hops", Options: two(), Lines: []string{"198.51.100.1, 198.51.100.2", "203.0.113.9, 10.0.0.9", "10.0.0.8, 10.0.0.7"}, Want: "ip=203.0.113.9"},
		{Name: "an empty line", Options: one(), Lines: []string{""}, Want: "ip=127.0.0.1"},
		{Name: "empty elements", Options: two(), Lines: []string{"203.0.113.9,, ,10.0.0.7,"}, Want: "ip=203.0.113.9"},
		{Name: "nothing but commas", Options: one(), Lines: []string{",,,"}, Want: "ip=127.0.0.1"},
		{Name: "no spaces, many spaces, tabs", Options: two(), Lines: []string{"203.0.113.9,10.0.0.9,  \t10.0.0.8\t , 10.0.0.7"}, Want: "ip=203.0.113.9"},
		{Name: "a port", Options: one(), Lines: []string{"203.0.113.9:51234"}, Want: "ip=203.0.113.9"},
		{Name: "ports on every hop", Options: two(), Lines: []string{"203.0.113.9:1, [fd00::7]:2, 10.0.0.7:3"}, Want: "ip=203.0.113.9"},
		{Name: "an impossible port", Options: one(), Lines: []string{"203.0.113.9:99999"}, Want: "ip=127.0.0.1"},
		{Name: "IPv6 in brackets", Options: one(), Lines: []string{"[2001:db8:1:2:3:4:5:6]"}, Want: "ip=2001:db8:1:2::/64"},
		{Name: "IPv6 in brackets with a port", Options: one(), Lines: []string{"[2001:db8:1:2::6]:443"}, Want: "ip=2001:db8:1:2::/64"},
		{Name: "IPv6 bare", Options: one(), Lines: []string{"2001:db8:1:2:3:4:5:6"}, Want: "ip=2001:db8:1:2::/64"},
		{Name: "IPv6 in capitals and in full", Options: one(), Lines: []string{"2001:0DB8:0001:0002:0000:0000:0000:0006"}, Want: "ip=2001:db8:1:2::/64"},
		{Name: "another address of the same /64", Options: one(), Lines: []string{"2001:db8:1:2:ffff:ffff:ffff:ffff"}, Want: "ip=2001:db8:1:2::/64"},
		{Name: "the next /64", Options: one(), Lines: []string{"2001:db8:1:3::"}, Want: "ip=2001:db8:1:3::/64"},
		{Name: "grouped by /48", Options: grouped(48, one()), Lines: []string{"2001:db8:1:2::6"}, Want: "ip=2001:db8:1::/48"},
		{Name: "not grouped", Options: grouped(128, one()), Lines: []string{"2001:db8:1:2::6"}, Want: "ip=2001:db8:1:2::6"},
		{Name: "grouping leaves IPv4 alone", Options: grouped(16, one()), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "IPv4 grouped by /24", Options: groupedV4(24, one()), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.0/24"},
		{Name: "IPv4 grouped by /1", Options: groupedV4(1, one()), Lines: []string{"203.0.113.9"}, Want: "ip=128.0.0.0/1"},
		{Name: "IPv4 not grouped", Options: groupedV4(32, one()), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "grouping IPv4 leaves IPv6 alone", Options: groupedV4(8, one()), Lines: []string{"2001:db8:1:2::6"}, Want: "ip=2001:db8:1:2::/64"},
		{Name: "IPv4-mapped, grouped", Options: groupedV4(24, one()), Lines: []string{"::ffff:203.0.113.9"}, Want: "ip=203.0.113.0/24"},
		{Name: "NAT64, grouped", Options: groupedV4(24, one()), Lines: []string{"64:ff9b::cb00:7109"}, Want: "ip=203.0.113.0/24"},
		{Name: "the peer grouped", Options: groupedV4(8, trust()), Want: "ip=127.0.0.0/8"},
		{Name: "trust is by address, not by group", Options: groupedV4(8, trust("127.0.0.2/32")), Lines: []string{"203.0.113.9"}, Want: "ip=127.0.0.0/8"},
		{Name: "IPv4-mapped, dotted", Options: one(), Lines: []string{"::ffff:203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "IPv4-mapped, in hex", Options: one(), Lines: []string{"::ffff:cb00:7109"}, Want: "ip=203.0.113.9"},
		{Name: "IPv4-mapped, in full", Options: one(), Lines: []string{"0000:0000:0000:0000:0000:FFFF:CB00:7109"}, Want: "ip=203.0.113.9"},
		{Name: "IPv4-mapped with a port", Options: one(), Lines: []string{"[::ffff:203.0.113.9]:443"}, Want: "ip=203.0.113.9"},
		{Name: "a trusted hop, IPv4-mapped", Options: two(), Lines: []string{"203.0.113.9, ::ffff:10.0.0.7"}, Want: "ip=203.0.113.9"},
		{Name: "a zone", Options: grouped(128, one()), Lines: []string{"fe80::1%eth0"}, Want: "ip=fe80::1"},
		{Name: "a zone and a port", Options: grouped(128, one()), Lines: []string{"[fe80::1%eth0]:80"}, Want: "ip=fe80::1"},
		{Name: "a zone does not hide a trusted hop", Options: two(), Lines: []string{"203.0.113.9, fd00::7%eth0"}, Want: "ip=203.0.113.9"},
		{Name: "NAT64", Options: one(), Lines: []string{"64:ff9b::cb00:7109"}, Want: "ip=203.0.113.9"},
		{Name: "NAT64, dotted, with a port", Options: one(), Lines: []string{"[64:ff9b::203.0.113.9]:443"}, Want: "ip=203.0.113.9"},
		{Name: "next to NAT64", Options: one(), Lines: []string{"64:ff9b:0:0:1::cb00:7109"}, Want: "ip=64:ff9b::/64"},
		{Name: "garbage for a client", Options: one(), Lines: []string{"unknown"}, Want: "ip=127.0.0.1"},
		{Name: "garbage left of the client", Options: one(), Lines: []string{"<script>, 203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "garbage behind a trusted hop", Options: two(), Lines: []string{"203.0.113.9, _hidden, 10.0.0.7"}, Want: "ip=10.0.0.7"},
		{Name: "a host name", Options: one(), Lines: []string{"client.example"}, Want: "ip=127.0.0.1"},
		{Name: "leading zeros, read as octal by some", Options: one(), Lines: []string{"010.0.0.1"}, Want: "ip=127.0.0.1"},
		{Name: "IPv4 as one number", Options: one(), Lines: []string{"3405803785"}, Want: "ip=127.0.0.1"},
		{Name: "IPv4 in brackets", Options: one(), Lines: []string{"[203.0.113.9]"}, Want: "ip=127.0.0.1"},
		{Name: "an open bracket", Options: one(), Lines: []string{"[2001:db8::1"}, Want: "ip=127.0.0.1"},
		{Name: "quoted, as in Forwarded", Options: one(), Lines: []string{`"203.0.113.9"`}, Want: "ip=127.0.0.1"},
		{Name: "split at a semicolon", Options: one(), Lines: []string{"198.51.100.1; 203.0.113.9"}, Want: "ip=127.0.0.1"},
		{Name: "a prefix for an address", Options: one(), Lines: []string{"203.0.113.0/24"}, Want: "ip=127.0.0.1"},
		{Name: "trusted proxies written IPv4-mapped", Options: trust("::ffff:127.0.0.0/104"), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "everybody of IPv4 is trusted", Options: trust("0.0.0.0/0"), Lines: []string{"2001:db8:1:2::6, 203.0.113.9"}, Want: "ip=2001:db8:1:2::/64"},
		{Name: "::/0 trusts nobody of IPv4", Options: trust("::/0"), Lines: []string{"203.0.113.9"}, Want: "ip=127.0.0.1"},
	}
}

// counted are cases of proxies whose number alone is known.
func counted() []Case {
	return []Case{
		{Name: "one hop", Options: hops(1), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "one hop, and the client made up others", Options: hops(1), Lines: []string{"198.51.100.1, 10.0.0.7, 203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "two hops", Options: hops(2), Lines: []string{"203.0.113.9, 10.0.0.7"}, Want: "ip=203.0.113.9"},
		{Name: "two hops, and the client made up others", Options: hops(2), Lines: []string{"198.51.100.1, 127.0.0.1, 203.0.113.9, 192.0.2.66"}, Want: "ip=203.0.113.9"},
		{Name: "three hops over three lines", Options: hops(3), Lines: []string{"198.51.100.1", "203.0.113.9, 10.0.0.8", "10.0.0.7"}, Want: "ip=203.0.113.9"},
		{Name: "two hops, and the client sent a line before theirs", Options: hops(2), Lines: []string{"198.51.100.1, 198.51.100.2", "203.0.113.9", "10.0.0.7"}, Want: "ip=203.0.113.9"},
		{Name: "two hops of IPv6, with ports", Options: hops(2), Lines: []string{"198.51.100.1, [2001:db8:1:2::6]:443, [fd00::7]:2"}, Want: "ip=2001:db8:1:2::/64"},
		{Name: "a hop, grouped", Options: groupedV4(24, hops(1)), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.0/24"},
		{Name: "a hop, IPv4-mapped", Options: hops(1), Lines: []string{"::ffff:203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "a hop behind NAT64", Options: hops(1), Lines: []string{"64:ff9b::cb00:7109"}, Want: "ip=203.0.113.9"},
		{Name: "empty elements are no hops", Options: hops(2), Lines: []string{"198.51.100.1,,203.0.113.9, ,10.0.0.7,", ""}, Want: "ip=203.0.113.9"},
		{Name: "garbage is a hop", Options: hops(2), Lines: []string{"198.51.100.1, 203.0.113.9, unknown"}, Want: "ip=203.0.113.9"},
		{Name: "garbage left of the client's hop", Options: hops(1), Lines: []string{"<script>, 203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "garbage at the client's hop", Options: hops(1), Lines: []string{"198.51.100.1, unknown"}, Status: 400},
		{Name: "garbage from the client, with too many hops", Options: hops(2), Lines: []string{"<script>, 203.0.113.9"}, Status: 400},
		{Name: "a hop without a header", Options: hops(1), Status: 500},
		{Name: "a hop and nothing but commas", Options: hops(1), Lines: []string{",,,", ""}, Status: 500},
		{Name: "fewer elements than hops", Options: hops(2), Lines: []string{"203.0.113.9"}, Status: 500},
		{Name: "more hops than anybody has", Options: hops(1 << 30), Lines: []string{"203.0.113.9, 10.0.0.7"}, Status: 500},
	}
}

func fromElsewhere() []Case {
	return []Case{
		{Name: "a hop from a public address", Options: hops(1), Peer: peer("192.0.2.66:1234"), Lines: []string{"198.51.100.1, 203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "a hop over a unix socket", Options: hops(1), Peer: unix, Lines: []string{"198.51.100.1, 203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "a hop over a unix socket without a header", Options: hops(1), Peer: unix, Status: 500},
		{Name: "a peer of IPv4, grouped", Options: groupedV4(24, trust()), Peer: peer("203.0.113.9:1234"), Want: "ip=203.0.113.0/24"},
		{Name: "a peer of IPv4", Peer: peer("203.0.113.9:1234"), Want: "ip=203.0.113.9"},
		{Name: "a peer of IPv6", Peer: peer("[2001:db8:1:2:3:4:5:6]:1234"), Want: "ip=2001:db8:1:2::/64"},
		{Name: "a peer, IPv4-mapped, as a socket for both has it", Peer: peer("[::ffff:203.0.113.9]:1234"), Want: "ip=203.0.113.9"},
		{Name: "a peer with a zone", Options: grouped(128, trust()), Peer: peer("[fe80::1%eth0]:1234"), Want: "ip=fe80::1"},
		{Name: "a peer behind NAT64", Peer: peer("[64:ff9b::cb00:7109]:1234"), Want: "ip=203.0.113.9"},
		{Name: "a peer that forges", Options: trust("10.0.0.0/8"), Peer: peer("192.0.2.66:1234"), Lines: []string{"10.0.0.7"}, Want: "ip=192.0.2.66"},
		{Name: "a trusted peer, IPv4-mapped", Options: trust("10.0.0.0/8"), Peer: peer("[::ffff:10.0.0.7]:1234"), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "a trusted peer with a zone", Options: trust("fe80::/10"), Peer: peer("[fe80::7%eth0]:1234"), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "a trusted peer behind NAT64", Options: trust("192.0.2.0/24"), Peer: peer("[64:ff9b::c000:201]:1234"), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "a trusted proxy listed by its NAT64 prefix", Options: trust("64:ff9b::c000:200/120"), Peer: peer("[64:ff9b::c000:201]:1234"), Lines: []string{"203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "trust is by address, not by /64", Options: trust("2001:db8::7/128"), Peer: peer("[2001:db8::8]:1234"), Lines: []string{"203.0.113.9"}, Want: "ip=2001:db8::/64"},
		{Name: "a unix socket", Peer: unix, Lines: []string{"203.0.113.9"}, Status: 500},
		{Name: "a unix socket is not in 0.0.0.0/0", Options: trust("0.0.0.0/0", "::/0"), Peer: unix, Lines: []string{"203.0.113.9"}, Status: 500},
		{Name: "a trusted unix socket", Options: overUnix(trust("10.0.0.0/8")), Peer: unix, Lines: []string{"203.0.113.9, 10.0.0.7"}, Want: "ip=203.0.113.9"},
		{Name: "a trusted unix socket and a made-up hop", Options: overUnix(trust()), Peer: unix, Lines: []string{"198.51.100.1, 203.0.113.9"}, Want: "ip=203.0.113.9"},
		{Name: "a trusted unix socket without a header", Options: overUnix(trust()), Peer: unix, Status: 500},
		{Name: "a trusted unix socket and garbage", Options: overUnix(trust()), Peer: unix, Lines: []string{"unknown"}, Status: 400},
	}
}
