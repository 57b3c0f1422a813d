package redistest

import (
	"bufio"
	"io"
	"net"
	"slices"
	"sync"
)

// proxied is one client's connection through a [Proxy].
type proxied struct {
	proxy  *Proxy
	client *net.TCPConn
	server net.Conn

	mu      sync.Mutex
	waiting []string // commands sent whose replies are still to come
	cut     bool     // a reply was lost: nothing passes any more
}

// unanswered are commands whose confirmations are pushes, or any number of
// replies, so that none can be waited for.
var unanswered = []string{
	"subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe",
}

// requests carries commands to the server, until the client closes.
func (c *proxied) requests() {
	defer c.proxy.forget(c.client, c.server)
	in := bufio.NewReader(c.client)
	for {
		name, raw, err := readRequest(in)
		if err != nil || !c.sent(name) {
			break
		}
		c.proxy.count(name)
		if _, err := c.server.Write(raw); err != nil {
			return
		}
	}
	// What is left unread at Close would turn the FIN into an RST.
	_, _ = io.Copy(io.Discard, in)
}

func (c *proxied) sent(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cut && !slices.Contains(unanswered, name) {
		c.waiting = append(c.waiting, name)
	}
	return !c.cut
}

// replies carries replies to the client, until the server closes or one is
// lost.
func (c *proxied) replies() {
	in := bufio.NewReader(c.server)
	for {
		kind, raw, err := readReply(in)
		if err != nil {
			c.proxy.forget(c.client, c.server)
			return
		}
		if how, lost := c.proxy.loses(c.answered(kind), kind); lost {
			c.lose(how)
			return
		}
		if _, err := c.client.Write(raw); err != nil {
			c.proxy.forget(c.client, c.server)
			return
		}
	}
}

// answered is the command that a reply of that kind answers; "" for a push.
func (c *proxied) answered(kind byte) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == '>' || len(c.waiting) == 0 {
		return ""
	}
	name := c.waiting[0]
	c.waiting = c.waiting[1:]
	return name
}

func (c *proxied) lose(how Fault) {
	c.mu.Lock()
	c.cut = true
	c.mu.Unlock()
	c.server.Close()
	switch how {
	case EOF:
		_ = c.client.CloseWrite()
	case Reset:
		_ = c.client.SetLinger(0)
		c.client.Close()
	case Silence: // until the client gives up and closes
	}
}
