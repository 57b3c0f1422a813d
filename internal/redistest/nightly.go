package redistest

import (
	"os"
	"testing"
)

// Nightly ends a test that is long, or needs a machine of its own, unless this
// is `make nightly`. A guarantee needs a shorter test beside it that always
// runs; why says what is different here.
func Nightly(tb testing.TB, why string) {
	tb.Helper()
	if os.Getenv("NEAP_TEST_NIGHTLY") == "" {
		tb.Skip("`make nightly` runs this: " + why)
	}
}
