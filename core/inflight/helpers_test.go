package inflight

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis tells of every dial that an outage fails
	if where := os.Getenv(holderEnv); where != "" {
		holder(where)
	}
	redistest.Main(m)
}

var modes = []store.FailMode{store.FailLocal, store.FailOpen, store.FailClosed}
