package behind

import (
	"context"
	"errors"
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

// replies are replies of proxies and of managed servers, and replies of a shape that no
// script of neap returns. core/script has a table of more errors.
var replies = map[string]string{
	"an error of Envoy":       "-upstream failure",
	"an error of a proxy":     "-ERR Connection timed out",
	"an error of a server":    "-ERR internal error",
	"a status":                "+FINE",
	"nil":                     "$-1",
	"a string":                "$4\r\nabcd",
	"an empty list":           "*0",
	"a list of lists":         "*1\r\n*1\r\n:1",
	"an error in a list":      "*2\r\n-ERR x\r\n:1",
	"a map":                   "%1\r\n+a\r\n:1",
	"a fraction":              ",1.5",
	"a boolean":               "#t",
	"a number of many digits": "(12345678901234567890",
}

// never are numbers that a script never returns, to one of the calls.
var never = map[string]string{
	"refund":                   "*1\r\n:1",
	"settle":                   "*2\r\n:1\r\n:0",
	"slot that fails closed":   ":0",
	"lock":                     ":0",
	"release of a lock":        ":-4",
	"extension of a lock":      ":-3",
	"claim of a guard":         ":-1",
	"conclusion of a guard":    ":0",
	"claim that is given back": ":2",
	"reservation":              ":0",
	"sale":                     ":5",
	"confirmation":             ":0",
	"cancellation":             ":3",
}

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
	for reply, line := range replies {
		for when, how := range whens {
			t.Run(how+" the script, "+reply, func(t *testing.T) {
				t.Parallel()
				isNotKnown(t, line, when, calls)
			})
		}
	}
	for name, line := range never {
		for when, how := range whens {
			t.Run(how+" the script, a number that it never returns, "+name, func(t *testing.T) {
				t.Parallel()
				isNotKnown(t, line, when, map[string]prepare{name: calls[name]})
			})
		}
	}
}

var whens = map[redistest.When]string{redistest.Before: "before", redistest.After: "after"}

func isNotKnown(t *testing.T, line string, when redistest.When, calls map[string]prepare) {
	t.Helper()
	p := newProxied(t)
	all := map[string]call{}
	for name, prepare := range calls {
		all[name] = prepare(t, p.side(t), p.there, name)
	}
	p.Answer(line, when, ever, "evalsha", "eval")
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

// TestARefusalOfOneThatWaits: the answer of its first question is lost, the next is that it
// must wait, and the last is a refusal. It is not told that nothing ran.
func TestARefusalOfOneThatWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waits string // the answer after which it asks again
		ask   func(ctx context.Context, here *side) error
	}{
		"lock":  {":-1000", func(ctx context.Context, here *side) error { return second(here.locker.Acquire(ctx, "k")) }},
		"guard": {":1000", func(ctx context.Context, here *side) error { return second(here.guard.Await(ctx, "k", "")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxied(t)
			here := p.side(t)
			p.Lose(redistest.EOF, 1, "evalsha", "eval")
			p.ThenAnswer("-NOSCRIPT No matching script.", redistest.Before, 1, "evalsha") // the queue's probe after a lost answer
			p.ThenAnswer(c.waits, redistest.Before, 1, "evalsha", "eval")
			p.ThenAnswer("-NOPERM User x has no permissions to run the 'evalsha' command", redistest.Before, ever, "evalsha", "eval")
			if err := c.ask(t.Context(), here); !errors.Is(err, script.ErrMaybeExecuted) {
				t.Errorf("got %v, want ErrMaybeExecuted", err)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// TestLeadGoesOn: a proxy answers what a candidate asks in place of Redis. The candidate
// leads when Redis is asked again.
func TestLeadGoesOn(t *testing.T) {
	t.Parallel()
	p := newProxied(t)
	here := p.side(t)
	for reply, line := range replies {
		p.Answer(line, redistest.After, ever, "evalsha", "eval")
		before := p.Lost()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var led atomic.Bool
		done := make(chan error, 1)
		go func() {
			done <- here.locker.Lead(ctx, reply, func(ctx context.Context) error {
				_, holds := lock.FromContext(ctx)
				led.Store(holds)
				return nil
			})
		}()
		redistest.Await(t, 20*time.Second, "the first asks", func() bool { return p.Lost() > before+3 || led.Load() })
		p.Answer("", redistest.After, 0)
		if err := <-done; err != nil || !led.Load() {
			t.Errorf("Lead behind a proxy that replies with %s for a while: got %v, led %v, want no error and true", reply, err, led.Load())
		}
		cancel()
	}
}
