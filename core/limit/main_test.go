package limit_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis tells of every dial that an outage fails
	redistest.Main(m)
}
