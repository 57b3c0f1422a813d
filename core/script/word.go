package script

import "unsafe"

// word is a key of a call in a batch. A pointer to it takes no memory of its own. In logs
// and traces it prints as the key, where a *string may print as its address.
type word string

// MarshalBinary returns the key for go-redis, which copies it.
func (w *word) MarshalBinary() ([]byte, error) {
	return unsafe.Slice(unsafe.StringData(string(*w)), len(*w)), nil //nolint:gosec // the copy is the only reader
}

func (w *word) String() string { return string(*w) }
