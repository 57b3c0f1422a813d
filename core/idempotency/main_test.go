package idempotency_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis logs each dial that fails in an outage
	redistest.RunChild(map[string]func(words []string){"crashes": crashes, "sleeper": sleeper})
	redistest.Main(m)
}
