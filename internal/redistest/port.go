package redistest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// busOffset is how far above its port a cluster node's bus listens; that it
// can be moved is new in Redis 7.
const busOffset = 10_000

// Ports are drawn from below the range that systems hand out to outgoing
// connections (32768 and up on Linux), so that none of those takes a server's
// port while it restarts; the bus port stays below it too.
const (
	firstPort = 10_000
	lastPort  = 22_000
)

// freePort is a port on which nothing listened a moment ago, and which no other
// process that runs tests gets, even while the server that had it is stopped. Any
// other process may take it before the server does: whoever starts a server on it
// retries.
func freePort() (int, error) {
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if reserve(port) && reserve(port+busOffset) && isFree(port) && isFree(port+busOffset) {
			return port, nil
		}
	}
	return 0, errors.New("redistest: no free port")
}

// reserved keeps sockets open until the process ends.
var reserved struct {
	sync.Mutex
	sockets []net.PacketConn
}

// reserve says whether this process now has a port, which it keeps, and had not
// before. It binds the port of UDP, which no server needs.
func reserve(port int) bool {
	c, err := net.ListenPacket("udp", localAddr(port))
	if err != nil {
		return false
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.sockets = append(reserved.sockets, c)
	return true
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", localAddr(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func localAddr(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
