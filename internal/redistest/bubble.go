package redistest

import (
	"context"
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// BubbleClient is a client of a miniredis that stands in the same synctest bubble: it
// reaches it without a socket, so that the bubble's time can pass.
func BubbleClient(tb testing.TB, m *miniredis.Miniredis) *redis.Client {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr:                  "127.0.0.1:1", // never dialled
		ContextTimeoutEnabled: true,
		Dialer:                func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
	})
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}
