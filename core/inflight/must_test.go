package inflight

import "testing"

// must returns what a call returned, and ends the test if the call failed: l :=
// must(New(…))(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}
