package adapter

import (
	"net/netip"

	"github.com/neap-go/neap/internal/address"
)

// Peer reads the text of a peer's address, for RemoteAddr. The text has no port if
// middleware has replaced the address with a bare one, as chi's RealIP does; the port is
// then 0. Peer returns the zero AddrPort if the text is no IP address, such as that of a
// unix socket.
func Peer(text string) netip.AddrPort {
	peer, err := netip.ParseAddrPort(text) // tried first: address.Parse would allocate an error
	if err == nil {
		return peer
	}
	peer, ok := address.Parse(text)
	if !ok {
		return netip.AddrPort{}
	}
	return peer
}
