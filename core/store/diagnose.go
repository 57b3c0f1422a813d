package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

// diagnosisTime is how long a diagnosis takes at most.
const diagnosisTime = 5 * time.Second

// Why a server that accepts connections does not answer as Redis does.
var (
	errTLS     = errors.New("the server wants TLS: set TLSConfig, or use a rediss:// URL")
	errNoRedis = errors.New("the server does not speak the protocol of Redis")
)

// tlsAlert is the first byte of a TLS server's answer to anything but a handshake
// (RFC 8446, section 5.1).
const tlsAlert = 21

// dialer connects to a server as its client does.
type dialer struct {
	network, address string
	dial             func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	asking *inquiry // nil if none goes on
}

// inquiry is one connection. All callers that ask meanwhile wait for it.
type inquiry struct {
	done chan struct{}
	err  error
}

// dialerOf is that of a client of one server, or of the first server of a cluster that
// is not known yet; nil if the client does not say how it connects.
func dialerOf(rdb script.Client) *dialer {
	switch c := rdb.(type) {
	case *redis.Client:
		o := c.Options()
		return &dialer{network: o.Network, address: o.Addr, dial: o.Dialer}
	case *redis.ClusterClient:
		o := c.Options()
		if len(o.Addrs) == 0 { // of a FailoverClusterClient, or of one that has ClusterSlots
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

// diagnose reports why a server does not answer, by a connection of its own, and nil if
// it does answer there. A client says no more than that it had no answer in time.
func (d *dialer) diagnose(ctx context.Context) error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	in := d.asking
	if in == nil {
		in = &inquiry{done: make(chan struct{})}
		d.asking = in
		go d.inquire(context.WithoutCancel(ctx), in)
	}
	d.mu.Unlock()
	select {
	case <-in.done:
		return in.err
	case <-ctx.Done():
		return fmt.Errorf("connecting to %s: %w", d.address, ctx.Err())
	}
}

// inquire asks for no longer than diagnosisTime, though some dialers do not end with their context.
func (d *dialer) inquire(ctx context.Context, in *inquiry) {
	ctx, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- d.ask(ctx) }()
	select {
	case in.err = <-result:
	case <-ctx.Done():
		in.err = fmt.Errorf("connecting to %s: no answer within %v", d.address, diagnosisTime)
	}
	if errors.Is(in.err, context.DeadlineExceeded) {
		in.err = errors.New(in.err.Error()) // no caller's context has ended
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
	var first [1]byte
	_, err = io.WriteString(conn, "PING\r\n") // Redis answers with +, or with - if it wants a password
	if err == nil {
		_, err = io.ReadFull(conn, first[:])
	}
	_, encrypted := conn.(*tls.Conn)
	switch {
	case err == nil && (first[0] == '+' || first[0] == '-'):
		return nil
	case !encrypted && (err == nil && first[0] == tlsAlert || err != nil && d.wantsTLS(ctx)):
		return fmt.Errorf("%s: %w", d.address, errTLS)
	case err == nil:
		return fmt.Errorf("%s: %w", d.address, errNoRedis)
	}
	return fmt.Errorf("%s accepts connections and does not answer: %w", d.address, err)
}

// wantsTLS tries a TLS handshake: a server that gets none may hang up without a word.
func (d *dialer) wantsTLS(ctx context.Context) bool {
	conn, err := d.dial(ctx, d.network, d.address)
	if err != nil {
		return false
	}
	defer conn.Close()
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it says nothing and trusts nothing
	return secure.HandshakeContext(ctx) == nil
}
