package behind

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// These are replies of proxies and of managed servers. core/script has a table of more.
var replies = []string{"upstream failure", "ERR Connection timed out", "ERR internal error"}

const (
	budget = 5 * time.Second
	ever   = 1 << 30
)

// proxied is a proxy before the shared server, and the side that is not behind it.
type proxied struct {
	*redistest.Proxy

	server *redistest.Server
	prefix string
	there  *side
}

func newProxied(t *testing.T) *proxied {
	t.Helper()
	srv := redistest.Standalone(t)
	p := &proxied{Proxy: srv.Proxy(t), server: srv, prefix: srv.Prefix(t)}
	p.there = newSide(t, storetest.Open(t, srv.Client(t), store.Options{Prefix: p.prefix, Budget: budget}))
	if err := p.there.warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// side returns a connected side behind the proxy, with breakers of its own.
func (p *proxied) side(t *testing.T) *side {
	t.Helper()
	rdb := p.server.Client(t, func(o *redis.Options) { o.Dialer, o.ContextTimeoutEnabled = p.Dial, true })
	here := newSide(t, storetest.Open(t, rdb, store.Options{Prefix: p.prefix, Budget: budget}))
	if _, err := here.limiter.Peek(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	return here
}

// TestAReplyThatIsNotKnown has a proxy answer each call of each primitive in place of
// Redis, before and after the script ran. The caller learns that its call may have run,
// and what Redis has granted is taken back.
func TestAReplyThatIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, reply := range replies {
		for when, how := range map[redistest.When]string{redistest.Before: "before", redistest.After: "after"} {
			t.Run(how+" the script, "+reply, func(t *testing.T) {
				t.Parallel()
				p := newProxied(t)
				all := map[string]call{}
				for name, prepare := range calls {
					all[name] = prepare(t, p.side(t), p.there, name)
				}
				p.Answer("-"+reply, when, ever, "evalsha", "eval")
				var asks sync.WaitGroup
				for name, c := range all {
					asks.Go(func() {
						if err := c.ask(t.Context()); !errors.Is(err, script.ErrMaybeExecuted) {
							t.Errorf("%s: got %v, want ErrMaybeExecuted", name, err)
						}
					})
				}
				asks.Wait()
				p.Answer("", when, 0)
				for name, c := range all {
					backWithin(t, c, name)
				}
			})
		}
	}
}

// TestAReplyOfAnotherShape: the reply to a call is one that its script never gives. That
// says nothing about whether the script ran.
func TestAReplyOfAnotherShape(t *testing.T) {
	t.Parallel()
	for when, how := range map[redistest.When]string{redistest.Before: "before", redistest.After: "after"} {
		p := newProxied(t)
		for name, prepare := range calls {
			c := prepare(t, p.side(t), p.there, name)
			p.Answer("+FINE", when, ever, "evalsha", "eval")
			err := c.ask(t.Context())
			p.Answer("", when, 0)
			if err == nil {
				t.Errorf("%s: got no error for a reply in place of the script's, %s it ran", name, how)
			}
			backWithin(t, c, name)
		}
	}
}

// backWithin waits until nothing is left of a call.
func backWithin(t *testing.T, c call, what string) {
	t.Helper()
	left := ""
	defer func() {
		if left != "" {
			t.Errorf("%s: Redis still has %s", what, left)
		}
	}()
	redistest.Await(t, 20*time.Second, what+": nothing to be left", func() bool {
		left = c.left(context.Background())
		return left == ""
	})
}

// TestARefusalAfterALostReply: the answer of the first attempt is lost, and the
// repetitions are refused. Nobody is told that nothing ran.
func TestARefusalAfterALostReply(t *testing.T) {
	t.Parallel()
	for name, prepare := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, refusal := range []string{"OOM command not allowed when used memory > 'maxmemory'.", "NOPERM User x has no permissions to run the 'evalsha' command"} {
				p := newProxied(t) // of its own: what the last one left in the background must not take the lost reply
				here := p.side(t)
				c := prepare(t, here, p.there, "k"+refusal[:3])
				p.Lose(redistest.EOF, 1, "evalsha", "eval")
				p.ThenAnswer("-"+refusal, redistest.Before, ever, "evalsha", "eval")
				err := c.ask(t.Context())
				p.Answer("", redistest.Before, 0)
				if !errors.Is(err, script.ErrMaybeExecuted) {
					t.Errorf("a reply that is lost, and then %s: got %v, want ErrMaybeExecuted", refusal, err)
				}
				backWithin(t, c, refusal)
			}
		})
	}
}

// TestLeadGoesOn: a proxy answers what a candidate asks in place of Redis. The candidate
// leads when Redis is asked again.
func TestLeadGoesOn(t *testing.T) {
	t.Parallel()
	p := newProxied(t)
	here := p.side(t)
	for i, reply := range replies {
		p.Answer("-"+reply, redistest.After, ever, "evalsha", "eval")
		before := p.Lost()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var led atomic.Bool
		done := make(chan error, 1)
		go func() {
			done <- here.locker.Lead(ctx, fmt.Sprint("key", i), func(ctx context.Context) error {
				_, holds := lock.FromContext(ctx)
				led.Store(holds)
				return nil
			})
		}()
		redistest.Await(t, 20*time.Second, "the first asks", func() bool { return p.Lost() > before+3 || led.Load() })
		p.Answer("", redistest.After, 0)
		if err := <-done; err != nil || !led.Load() {
			t.Errorf("Lead behind a proxy that says %q for a while: got %v, led %v, want no error and true", reply, err, led.Load())
		}
		cancel()
	}
}
