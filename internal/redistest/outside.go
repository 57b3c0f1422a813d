package redistest

import "net"

// FromOutside returns an address of the server that is not one of the loopback, or "".
func FromOutside(server string) string {
	_, port, _ := net.SplitHostPort(server)
	all, _ := net.InterfaceAddrs()
	for _, one := range all {
		if ip, is := one.(*net.IPNet); is && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			return net.JoinHostPort(ip.IP.String(), port)
		}
	}
	return ""
}
