package wire

import (
	"strconv"
	"unsafe"
)

// Word is a key of a call in a batch. A pointer to it takes no memory of its own. In logs
// and traces it prints as the key, where a *string may print as its address.
type Word string

// MarshalBinary returns the key for go-redis, which copies it.
func (w *Word) MarshalBinary() ([]byte, error) {
	return unsafe.Slice(unsafe.StringData(string(*w)), len(*w)), nil //nolint:gosec // the copy is the only reader
}

func (w *Word) String() string { return string(*w) }

// counts and countTexts are made once, so that a call need not make any.
var counts, countTexts = func() (boxed [257]any, texts [257][]byte) {
	for i := range boxed {
		text := strconv.Itoa(i)
		boxed[i], texts[i] = text, []byte(text)
	}
	return boxed, texts
}()

// Count returns the word for a number of keys or calls.
func Count(n int) any {
	if n < len(counts) {
		return counts[n]
	}
	return strconv.Itoa(n)
}
