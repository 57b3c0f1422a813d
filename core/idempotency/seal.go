package idempotency

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/neap-go/neap/core/internal/keyspace"
)

// EncryptionKey encrypts results with AES-GCM. A result is bound to its record: it cannot
// be read if it was changed, or moved to another record.
type EncryptionKey struct {
	// ID is stored beside each result: 1 to 64 letters, digits, dots, dashes and
	// underscores. Each key needs an ID of its own.
	ID string
	// Secret is 16, 24 or 32 random bytes. New copies them. It is good for 2^32 results,
	// because each nonce is random (NIST SP 800-38D, section 8.3). Put another key in
	// front of it before then.
	Secret []byte
}

// The first byte of a stored result says how it is stored.
const (
	plain  = 'p' // as it is
	sealed = 's' // the key's ID, a colon, the nonce, and the output of GCM
)

var (
	errNoKey  = errors.New("idempotency: the result was encrypted with a key that is not among Options.EncryptionKeys")
	errSealed = errors.New("idempotency: the result was changed, or stood in another record")
	errPlain  = errors.New("idempotency: the result is not encrypted, so anybody may have written it")
)

// seals holds the keys of a Guard.
type seals struct {
	current string // "" encrypts nothing
	ciphers map[string]cipher.AEAD
}

func newSeals(keys []EncryptionKey) (*seals, error) {
	s := &seals{ciphers: map[string]cipher.AEAD{}}
	var faults []error
	for i, key := range keys {
		field := fmt.Sprintf("EncryptionKeys[%d]", i)
		if err := keyspace.CheckName(field+".ID", key.ID); err != nil {
			faults = append(faults, err)
		} else if _, twice := s.ciphers[key.ID]; twice {
			faults = append(faults, fmt.Errorf("%s.ID is %q again: give each key an ID of its own", field, key.ID))
		}
		s.ciphers[key.ID] = nil
		block, err := aes.NewCipher(key.Secret)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s.Secret has %d bytes: use 16, 24 or 32 random ones", field, len(key.Secret)))
			continue
		}
		s.ciphers[key.ID], _ = cipher.NewGCM(block) // AES has the block size that GCM wants
	}
	if len(keys) > 0 {
		s.current = keys[0].ID
	}
	return s, errors.Join(faults...)
}

// seal returns what is stored as the result of a record.
func (s *seals) seal(record string, result []byte) []byte {
	if s.current == "" {
		return append(append(make([]byte, 0, 1+len(result)), plain), result...)
	}
	aead := s.ciphers[s.current]
	stored := make([]byte, 0, 2+len(s.current)+aead.NonceSize()+len(result)+aead.Overhead())
	stored = append(stored, sealed)
	stored = append(stored, s.current...)
	stored = append(stored, ':')
	nonce := stored[len(stored) : len(stored)+aead.NonceSize()]
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(stored[:len(stored)+len(nonce)], nonce, result, []byte(record))
}

// open returns the result of a record from what was stored. If there are keys, open
// accepts only what was sealed with one of them.
func (s *seals) open(record, stored string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(stored, string(plain)); ok {
		if s.current != "" {
			return nil, errPlain
		}
		return bytesOf(rest), nil
	}
	rest, ok := strings.CutPrefix(stored, string(sealed))
	if !ok {
		return nil, errSealed
	}
	id, rest, _ := strings.Cut(rest, ":")
	aead, ok := s.ciphers[id]
	switch {
	case !ok:
		return nil, errNoKey
	case len(rest) < aead.NonceSize():
		return nil, errSealed
	}
	text := []byte(rest)
	nonce, text := text[:aead.NonceSize()], text[aead.NonceSize():]
	result, err := aead.Open(text[:0], nonce, text, []byte(record))
	if err != nil {
		return nil, errSealed
	}
	return result, nil
}

// bytesOf returns the bytes of a part of a reply without copying them. A copy would cost
// a replay as much as everything else that the process does for it. It is safe because
// go-redis reads each reply into bytes of its own, makes a string of them in the same
// way, and keeps neither.
func bytesOf(reply string) []byte {
	if reply == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(reply), len(reply)) //nolint:gosec // as above
}
