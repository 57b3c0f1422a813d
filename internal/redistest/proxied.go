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
	waiting []passed // commands sent whose replies are still to come
	cut     bool     // a reply was lost: nothing passes any more
}

// passed is a command on its way.
type passed struct {
	name   string
	answer string // what the proxy answers in place of the server; "" for nothing
}

// instead is sent to the server for a command that it must not get, so that the
// replies keep their order.
const instead = "*1\r\n$4\r\nPING\r\n"

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
		if err != nil {
			break
		}
		answer, own := c.proxy.answers(name, Before, 0)
		if !c.sent(passed{name, answer}) {
			break
		}
		if own {
			raw = []byte(instead)
		} else {
			c.proxy.count(name)
		}
		if _, err := c.server.Write(raw); err != nil {
			return
		}
	}
	// What is left unread at Close would turn the FIN into an RST.
	_, _ = io.Copy(io.Discard, in)
}

func (c *proxied) sent(one passed) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cut && (one.answer != "" || !slices.Contains(unanswered, one.name)) {
		c.waiting = append(c.waiting, one)
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
		of := c.answered(kind)
		if how, lost := c.proxy.loses(of.name, kind); lost {
			c.lose(how)
			return
		}
		if text, own := c.proxy.answers(of.name, After, kind); own {
			of.answer = text
		}
		if of.answer != "" {
			raw = []byte(of.answer + "\r\n")
		}
		if _, err := c.client.Write(raw); err != nil {
			c.proxy.forget(c.client, c.server)
			return
		}
	}
}

// answered is the command that a reply of that kind answers; none for a push.
func (c *proxied) answered(kind byte) passed {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == '>' || len(c.waiting) == 0 {
		return passed{}
	}
	one := c.waiting[0]
	c.waiting = c.waiting[1:]
	return one
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
