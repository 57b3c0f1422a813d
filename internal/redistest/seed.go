package redistest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

const seedEnv = "NEAP_TEST_SEED"

// runSeed is the number in NEAP_TEST_SEED. Without it the seed is 1, so that two
// runs generate the same; `make nightly` draws one.
var runSeed = sync.OnceValue(func() uint64 {
	text := os.Getenv(seedEnv)
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic("redistest: " + seedEnv + " is not a number: " + text)
	}
	return seed
})

// Seed is the seed of what this test generates. It depends on NEAP_TEST_SEED and
// on the test's name alone, so a test generates the same whatever runs beside
// it. The test's log says how to generate the same again; it cannot say how
// goroutines and servers interleaved.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	tb.Logf("%s=%d generates this", seedEnv, runSeed())
	return seedOf(runSeed(), tb.Name())
}

// Rand draws numbers from the test's [Seed]. One goroutine may use it at a time.
func Rand(tb testing.TB) *rand.Rand {
	tb.Helper()
	return rand.New(rand.NewPCG(Seed(tb), 0))
}

func seedOf(run uint64, name string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, run, " ", name)
	return h.Sum64()
}
