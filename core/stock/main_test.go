package stock_test

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable()                                                    // go-redis logs each dial that fails in an outage
	_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // most of them wait
	redistest.RunChild(map[string]func(words []string){"crowd": crowd})
	redistest.Main(m)
}
