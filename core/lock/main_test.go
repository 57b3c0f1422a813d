package lock_test

import (
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis tells of every dial that an outage fails
	if line := os.Getenv(childEnv); line != "" {
		words := strings.Fields(line)
		children[words[0]](words[1:])
		os.Exit(0)
	}
	redistest.Main(m)
}
