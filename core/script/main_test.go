package script_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// count counts how often it ran.
var count = script.New("count.lua", `
local n = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 600000)
return n`)

func newRunner(tb testing.TB, rdb script.Client, opts *script.Options) *script.Runner {
	tb.Helper()
	r, err := script.NewRunner(rdb, opts)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// front is a client that reaches its server or cluster through a proxy.
type front struct {
	name  string
	rdb   redis.UniversalClient
	proxy *redistest.Proxy
}

// fronts are a standalone server and a cluster behind proxies. The client has its default
// options, except those that options changes.
func fronts(t *testing.T, contextTimeouts bool) []front {
	one, many := redistest.Standalone(t), redistest.Cluster(t)
	p, q := one.Proxy(t), many.Proxy(t)
	return []front{
		{"standalone", one.Client(t, func(o *redis.Options) {
			o.Dialer, o.ContextTimeoutEnabled = p.Dial, contextTimeouts
		}), p},
		{"cluster", many.Client(t, func(o *redis.ClusterOptions) {
			o.Dialer, o.ContextTimeoutEnabled = q.Dial, contextTimeouts
		}), q},
	}
}
