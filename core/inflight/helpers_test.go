package inflight

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis tells of every dial that an outage fails
	redistest.RunChild(map[string]func(words []string){"holder": holder})
	redistest.Main(m)
}

var modes = []store.FailMode{store.FailLocal, store.FailOpen, store.FailClosed}
