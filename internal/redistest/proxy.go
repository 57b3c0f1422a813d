package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Fault is how a client loses a reply.
type Fault int

// The faults of [Proxy.Lose].
const (
	EOF     Fault = iota // the connection is closed in order (FIN)
	Reset                // the connection is reset (RST)
	Silence              // nothing comes any more, and the connection stays
)

// Proxy stands before a server, or before every node of a cluster. It can lose
// the replies to commands that the server has executed, and it can answer
// commands itself. Clients go through it by its [Proxy.Dial]. Its methods may be called from several
// goroutines.
type Proxy struct {
	fronts map[string]net.Listener // by the server's address
	work   sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	conns     map[net.Conn]struct{}
	forwarded map[string]int
	lost      int
	plans     []plan // the first of them counts
}

// plan is what a proxy does to some calls.
type plan struct {
	how      Fault
	answer   string // what it answers itself; "" if it loses replies
	when     When   // when it answers
	times    int
	commands []string
}

// Proxy stands before this server until the test ends.
func (s *Server) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	return newProxy(tb, s)
}

// Proxy stands before all nodes of this cluster until the test ends.
func (c *ClusterServer) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	return newProxy(tb, c.nodes...)
}

func newProxy(tb testing.TB, servers ...*Server) *Proxy {
	tb.Helper()
	p := &Proxy{
		fronts:    map[string]net.Listener{},
		conns:     map[net.Conn]struct{}{},
		forwarded: map[string]int{},
	}
	tb.Cleanup(p.close)
	for _, s := range servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		p.fronts[s.addr] = l
		p.work.Go(func() { p.serve(l, s.addr) })
	}
	return p
}

// Dial connects to the server at addr by way of the proxy: it is made for
// [redis.Options] and [redis.ClusterOptions] as their Dialer.
func (p *Proxy) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	front, ok := p.fronts[addr]
	if !ok {
		return nil, fmt.Errorf("redistest: the proxy does not stand before %s", addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, front.Addr().String())
}

// Lose makes clients lose the replies to the next times calls of the named
// commands, each with the connection it was made on. The server has executed
// what is lost this way; a reply that is an error proves nothing of the kind
// and passes. A later call replaces an earlier one; times 0 ends it.
func (p *Proxy) Lose(how Fault, times int, commands ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans = []plan{newPlan(plan{how: how, times: times}, commands)}
}

func newPlan(one plan, commands []string) plan {
	for _, c := range commands {
		one.commands = append(one.commands, strings.ToLower(c))
	}
	return one
}

// When is when a proxy answers a command itself.
type When bool

// These are the times at which [Proxy.Answer] answers.
const (
	Before When = false // the server does not get the command
	After  When = true  // the server has executed it
)

// Answer makes the proxy answer the next times calls of the named commands
// with this line, such as "-ERR away" for an error. An error of the server passes if the answer is
// to come after it: nothing was executed then. A later call, also of Lose,
// replaces an earlier one; times 0 ends it.
func (p *Proxy) Answer(text string, when When, times int, commands ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans = []plan{newPlan(plan{answer: text, when: when, times: times}, commands)}
}

// ThenAnswer is Answer for the calls that follow those of the calls of Lose and
// Answer before it.
func (p *Proxy) ThenAnswer(text string, when When, times int, commands ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans = append(p.plans, newPlan(plan{answer: text, when: when, times: times}, commands))
}

// answers decides about one command, and about its reply if that has come.
func (p *Proxy) answers(command string, when When, kind byte) (text string, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.plan(command, kind)
	if one == nil || one.answer == "" || one.when != when {
		return "", false
	}
	one.times--
	p.lost++
	return one.answer, true
}

// plan returns what is planned for a command, or for a reply of that kind to it.
func (p *Proxy) plan(command string, kind byte) *plan {
	for len(p.plans) > 0 && p.plans[0].times == 0 {
		p.plans = p.plans[1:]
	}
	if len(p.plans) == 0 || kind == '-' || kind == '!' || !slices.Contains(p.plans[0].commands, command) {
		return nil
	}
	return &p.plans[0]
}

// Forwarded is how often the command was sent on to a server.
func (p *Proxy) Forwarded(command string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forwarded[strings.ToLower(command)]
}

// Lost is how many replies were lost, or were not the server's.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *Proxy) count(command string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forwarded[command]++
}

// loses decides about one reply.
func (p *Proxy) loses(command string, kind byte) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.plan(command, kind)
	if one == nil || one.answer != "" {
		return 0, false
	}
	one.times--
	p.lost++
	return one.how, true
}

func (p *Proxy) serve(l net.Listener, addr string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", addr)
		if err != nil {
			client.Close()
			continue
		}
		c := &proxied{proxy: p, client: client.(*net.TCPConn), server: server}
		if !p.track(client, server) {
			return
		}
		p.work.Go(c.requests)
		p.work.Go(c.replies)
	}
}

// track has close end the connections; it ends them itself when that is over.
func (p *Proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			c.Close()
		}
		p.conns[c] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.conns, c)
	}
}

func (p *Proxy) close() {
	for _, l := range p.fronts {
		l.Close()
	}
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}
