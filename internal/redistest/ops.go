package redistest

import (
	"os"
	"strconv"
	"sync"
)

// scale is the fraction of the full figures that tests run: NEAP_TEST_SCALE,
// by default a twentieth.
var scale = sync.OnceValue(func() float64 {
	text := os.Getenv("NEAP_TEST_SCALE")
	if text == "" {
		return 0.05
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f > 0) {
		panic("redistest: NEAP_TEST_SCALE is not a positive number: " + text)
	}
	return f
})

// Ops is how many operations a test generates whose full figure is n: n times
// NEAP_TEST_SCALE (a twentieth by default, 1 in `make full`), but no fewer than 100 where n is
// that many.
func Ops(n int) int { return scaled(n, scale()) }

// Steps is [Ops] for a comparison that one goroutine makes: no more than a
// two-hundredth of n under the race detector, which has nothing to find there and
// makes it slower. `make full` runs the packages that use it without.
func Steps(n int) int {
	if Race {
		return scaled(n, min(scale(), 0.005))
	}
	return Ops(n)
}

func scaled(n int, scale float64) int {
	return max(int(float64(n)*scale), min(n, 100))
}
