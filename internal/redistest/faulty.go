package redistest

import (
	"math/rand/v2"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Faulty is a client that loses replies of scripts when it is told to.
type Faulty struct {
	*redis.Client
	proxy *Proxy
	rng   *rand.Rand
}

// Faulty makes a client of the server, as the library's user.
func (s *Server) Faulty(tb testing.TB) *Faulty {
	tb.Helper()
	f := &Faulty{proxy: s.Proxy(tb), rng: Rand(tb)}
	f.Client = s.Client(tb, func(o *redis.Options) { o.Dialer, o.ContextTimeoutEnabled = f.proxy.Dial, true })
	return f
}

// Lose has the next replies get lost: that of the call, and now and then those of
// the next attempts. It is called by one goroutine at a time.
func (f *Faulty) Lose() {
	how := []Fault{EOF, Reset}[f.rng.IntN(2)]
	f.proxy.Lose(how, 1+f.rng.IntN(4)/3, "evalsha", "eval")
}

// Heal loses no more of them.
func (f *Faulty) Heal() { f.proxy.Lose(EOF, 0) }

// Lost is how many were lost.
func (f *Faulty) Lost() int { return f.proxy.Lost() }
