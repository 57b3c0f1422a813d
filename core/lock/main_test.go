package lock_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis logs each dial that fails in an outage
	redistest.RunChild(map[string]func(words []string){"once": onceChild, "leader": leaderChild, "sleeper": sleeper, "stander": stander})
	redistest.Main(m)
}
