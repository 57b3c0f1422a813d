// Package token makes the tokens that name grants in Redis.
package token

import (
	"crypto/rand"
	"encoding/base64"
)

// New returns 128 random bits as 22 characters that are safe in keys, shells and logs. It
// is safe for concurrent use.
//
// It asks the system each time. If it kept random bytes in stock, two machines that were
// resumed from one snapshot would make the same tokens, and each would be taken for the
// other.
func New() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], bits[:])
	return string(text[:])
}
