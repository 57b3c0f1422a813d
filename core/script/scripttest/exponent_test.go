package scripttest

import (
	"slices"
	"testing"
)

// TestExponentsAreFound in text to which scripts have joined numbers. None is found in
// keys, hashes and tokens.
func TestExponentsAreFound(t *testing.T) {
	t.Parallel()
	const n = "1.7640000001235e+15"
	for text, want := range map[string][]string{
		n: {n}, "at=" + n: {n}, "ann/" + n: {n}, "v1." + n: {n}, "user" + n: {n}, n + "_x": {n}, n + "us": {n}, "1:" + n + ":": {n},
		"x-" + n: {n}, "1e+15 " + n: {"1e+15", n}, "2e+15 1e+15": {"2e+15", "1e+15"}, "[1e-05,2]": {"1e-05"}, "at=1e+15": {"1e+15"},
		"id1.764e+15": {"1.764e+15"}, "id1.5e+17": {"1.5e+17"}, "id_1.5e+17x": {"1.5e+17"}, "id1e+15": {"1e+15"}, "id_1e+15:": {"1e+15"},
		"5e+10d": nil, "a5e+10": nil, "a5e+15d": nil, "1e15": nil, "5e-3": nil, "b/1e+15": nil, "1e+15b": nil, "3f9e-4a11-9e10": nil, "MTIz+1e+10/": nil, "1764000000123456": nil,
	} {
		if got := exponents(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
