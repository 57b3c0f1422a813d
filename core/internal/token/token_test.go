package token

import (
	"regexp"
	"sync"
	"testing"
)

// TestEachIsAnother makes tokens in many goroutines, each of 128 bits.
func TestEachIsAnother(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^[A-Za-z0-9_-]{21}[AQgw]$`)
	var all sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				made := New()
				if _, twice := all.LoadOrStore(made, true); twice || !shape.MatchString(made) {
					t.Errorf("a token: got %q, made twice %v, want 128 bits, different each time", made, twice)
				}
			}
		})
	}
	wg.Wait()
}

// TestEveryBitVaries finds each character at every place. The last place is an exception:
// it has only the last two bits.
func TestEveryBitVaries(t *testing.T) {
	t.Parallel()
	var seen [22]map[byte]bool
	for i := range seen {
		seen[i] = map[byte]bool{}
	}
	for range 3000 { // one of the characters is missed in 1 of 10^17 runs
		made := New()
		for i := range seen {
			seen[i][made[i]] = true
		}
	}
	for i, chars := range seen {
		want := 64
		if i == len(seen)-1 {
			want = 4
		}
		if len(chars) != want {
			t.Errorf("place %d: got %d different characters, want %d", i, len(chars), want)
		}
	}
}
