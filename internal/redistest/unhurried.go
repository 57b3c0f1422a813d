package redistest

import (
	"context"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Embedded is an unhurried client of a miniredis of its own, which lasts as long
// as the process. It is for examples in the documentation, which have no test.
func Embedded() *redis.Client {
	m, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	m.ClockTTL(true)
	o := &redis.Options{Addr: m.Addr()}
	Unhurried(o)
	return redis.NewClient(o)
}

// Unhurried changes the options of a client so that a call which was sent waits
// up to a minute for its reply, whatever its budget is. It is for tests of code
// that keeps the default budgets, such as what the README shows: there a busy
// machine must not decide. A server that stops ends the call at once; a server
// that is paused does not.
func Unhurried(o *redis.Options) {
	o.ContextTimeoutEnabled = true // a call waits on its connection alone
	dial := o.Dialer
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(context.WithoutCancel(ctx), network, addr)
		if err != nil {
			return nil, err
		}
		return unhurried{conn}, nil
	}
}

// unhurried is a connection on which each deadline is a minute away.
type unhurried struct{ net.Conn }

func away(deadline time.Time) time.Time {
	if deadline.IsZero() {
		return deadline
	}
	return time.Now().Add(time.Minute)
}

func (c unhurried) SetDeadline(t time.Time) error      { return c.Conn.SetDeadline(away(t)) }
func (c unhurried) SetReadDeadline(t time.Time) error  { return c.Conn.SetReadDeadline(away(t)) }
func (c unhurried) SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(away(t)) }
