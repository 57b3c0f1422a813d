package store

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/script"
)

// diagnosisTime is the longest time that a diagnosis takes.
const diagnosisTime = 5 * time.Second

// These errors say why a server that accepts connections does not answer as Redis does.
var (
	errTLS     = errors.New("the server wants TLS: set TLSConfig, or use a rediss:// URL")
	errNoRedis = errors.New("the server does not speak the protocol of Redis")
	errDenied  = errors.New("DENIED: the server is in protected mode and serves only its own host: give its user a password, and the client too")
	errClients = errors.New("the server has no room for another client: raise maxclients, or lower PoolSize")
)

// hangUps are what a server says before it hangs up on a client. The client only reports
// that the connection ended.
var hangUps = []struct {
	says string // the beginning of the line
	err  error
}{
	{"DENIED ", errDenied},
	{"ERR max number of clients", errClients},
}

// tlsAlert is the first byte that a TLS server sends if it gets anything but a handshake
// (RFC 8446, section 5.1).
const tlsAlert = 21

// longestLine is how much of a server's first line is read.
const longestLine = 512

// dialer connects to a server as its client does.
type dialer struct {
	network, address string
	dial             func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	asking *inquiry // nil if there is none
}

// inquiry is one diagnosis. All callers that ask while it runs wait for it.
type inquiry struct {
	done chan struct{}
	err  error
}

// dialerOf returns a dialer for a client's only server, or for the first server of a
// cluster whose servers are not known yet. It returns nil if the client does not say how
// it connects.
func dialerOf(rdb script.Client) *dialer {
	switch c := rdb.(type) {
	case *redis.Client:
		o := c.Options()
		return &dialer{network: o.Network, address: o.Addr, dial: o.Dialer}
	case *redis.ClusterClient:
		o := c.Options()
		if len(o.Addrs) == 0 { // a FailoverClusterClient, or a client with ClusterSlots
			return nil
		}
		dial := o.Dialer
		if dial == nil {
			dial = redis.NewDialer(&redis.Options{TLSConfig: o.TLSConfig, DialTimeout: o.DialTimeout})
		}
		return &dialer{network: "tcp", address: o.Addrs[0], dial: dial}
	}
	return nil
}

// diagnose reports why a server does not answer, on a connection of its own. It returns
// nil if the server answers there. It exists because a client only says that it got no
// answer in time.
func (d *dialer) diagnose(ctx context.Context) error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	in := d.asking
	if in == nil {
		in = &inquiry{done: make(chan struct{})}
		d.asking = in
		background.Go(func() { d.inquire(context.WithoutCancel(ctx), in) })
	}
	d.mu.Unlock()
	select {
	case <-in.done:
		return in.err
	case <-ctx.Done():
		return fmt.Errorf("connecting to %s: %w", d.address, ctx.Err())
	}
}

// inquire ends after diagnosisTime, even if a dialer does not end with its context.
func (d *dialer) inquire(ctx context.Context, in *inquiry) {
	ctx, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	select {
	case in.err = <-background.Start(func() error { return d.ask(ctx) }):
	case <-ctx.Done():
		in.err = fmt.Errorf("connecting to %s: no answer within %v", d.address, diagnosisTime)
	}
	if errors.Is(in.err, context.DeadlineExceeded) {
		in.err = errors.New(in.err.Error()) // it must not look as if a caller's context had ended
	}
	d.mu.Lock()
	d.asking = nil
	d.mu.Unlock()
	close(in.done)
}

func (d *dialer) ask(ctx context.Context) error {
	conn, err := d.dial(ctx, d.network, d.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	in := bufio.NewReaderSize(conn, longestLine)
	_, _ = io.WriteString(conn, "PING\r\n") // Redis answers with +, or with - if it wants a password; it may have spoken before
	first, err := in.ReadByte()
	_, encrypted := conn.(*tls.Conn)
	switch {
	case err == nil && first == '+':
		return nil
	case err == nil && first == '-':
		line, _ := in.ReadSlice('\n')
		for _, h := range hangUps {
			if strings.HasPrefix(string(line), h.says) {
				return fmt.Errorf("%s: %w", d.address, h.err)
			}
		}
		return nil
	case !encrypted && (err == nil && first == tlsAlert || err != nil && d.wantsTLS(ctx)):
		return fmt.Errorf("%s: %w", d.address, errTLS)
	case err == nil:
		return fmt.Errorf("%s: %w", d.address, errNoRedis)
	}
	return fmt.Errorf("%s accepts connections and does not answer: %w", d.address, err)
}

// wantsTLS tries a TLS handshake, because a TLS server that gets no handshake may hang up
// without an alert.
func (d *dialer) wantsTLS(ctx context.Context) bool {
	conn, err := d.dial(ctx, d.network, d.address)
	if err != nil {
		return false
	}
	defer conn.Close()
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it sends no data and trusts none
	return secure.HandshakeContext(ctx) == nil
}
