// Package keyspace makes the keys of limiters, locks and everything else that has state
// in Redis. So all keys have one shape and one set of safe characters.
package keyspace

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// DefaultPrefix begins every key if no other prefix is given.
const DefaultPrefix = "neap"

const (
	// maxReadable is the greatest length of a subject that a key has as it is, and of a
	// prefix.
	maxReadable = 64
	// minSecret is the least number of bytes in a secret.
	minSecret = 16
)

// Space makes the keys of one limiter or locker:
//
//	<prefix>:<kind>:<name>:{<subject>}:<tail>
//	<prefix>:<kind>:<name>:{<subject>}
//
// The braces make the subject the hash tag. So all keys of one subject share a slot, and
// no byte of a subject can choose another slot. A subject of safe bytes is used as it is.
// Any other is hashed, and the result begins with #. That is not a safe byte, so the two
// can never be equal.
//
// It is immutable and safe for concurrent use. The zero Space is not usable; use New.
type Space struct {
	head   string
	secret []byte
	stored bool
}

// New makes a space. The kind is chosen by the calling package and is not checked.
// [CheckPrefix] and [CheckSecret] must have accepted the prefix and the secret, and the
// secret must not change afterwards. With a secret, every subject is hashed under it. The
// error is about the name.
func New(kind, name, prefix string, secret []byte) (Space, error) {
	return Space{head: prefix + ":" + kind + ":" + name + ":{", secret: secret}, CheckName("name", name)
}

// Stored returns a space that uses a subject as it is if it is a hash.
func (k *Space) Stored() Space { return Space{k.head, k.secret, true} }

// CheckPrefix returns what is wrong with a prefix, or nil.
func CheckPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "{}") || len(prefix) > maxReadable || !printable(prefix) {
		return fmt.Errorf("Prefix is %.80q: use up to 64 printable ASCII characters without spaces and braces", prefix)
	}
	return nil
}

var safeName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// CheckName returns what is wrong with a name that is to be part of a key, or nil. The
// error calls it field.
func CheckName(field, name string) error {
	if safeName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%s is %.80q: use 1 to 64 letters, digits, dots, dashes or underscores", field, name)
}

// CheckSecret refuses a secret that is too short to keep anything secret. A nil secret
// means none.
func CheckSecret(secret []byte) error {
	if secret != nil && len(secret) < minSecret {
		return fmt.Errorf("SubjectSecret has %d bytes: use at least %d, or nil for none", len(secret), minSecret)
	}
	return nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Key returns the key of a subject. The tail tells keys of one subject apart, and is not
// checked. If it is empty, its colon is left out.
func (k *Space) Key(subject, tail string) string {
	var b strings.Builder
	return k.KeyIn(&b, subject, tail)
}

// chunk is how much memory a builder allocates at once after its first key.
const chunk = 1 << 10

// KeyIn is Key, but the key is a part of the builder's text, so that several keys share
// memory. Keys that were made before do not change.
func (k *Space) KeyIn(b *strings.Builder, subject, tail string) string {
	end := "}:"
	if tail == "" {
		end = "}"
	}
	subject = k.Subject(subject)
	length := len(k.head) + len(subject) + len(end) + len(tail)
	if b.Cap()-b.Len() < length {
		room := length
		if b.Len() > 0 {
			room = max(length, chunk)
		}
		b.Reset()
		b.Grow(room)
	}
	from := b.Len()
	for _, part := range [...]string{k.head, subject, end, tail} {
		b.WriteString(part)
	}
	return b.String()[from:]
}

// Subject returns the subject as it appears in a key.
func (k *Space) Subject(subject string) string {
	switch {
	case k.stored && hashed.MatchString(subject):
		return subject
	case k.secret == nil:
		return Plain(subject)
	}
	return hash(subject, k.secret)
}

// Plain returns the subject as it appears in a key without a secret. A process stores
// subjects in this form too: it has at most 64 bytes.
func Plain(subject string) string {
	if readable(subject) {
		return subject
	}
	return hash(subject, nil)
}

func hash(subject string, secret []byte) string {
	var sum [sha256.Size]byte
	if secret == nil {
		sum = sha256.Sum256([]byte(subject))
	} else {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(subject))
		mac.Sum(sum[:0])
	}
	text := [44]byte{'#'}
	base64.RawURLEncoding.Encode(text[1:], sum[:])
	return string(text[:])
}

func readable(subject string) bool {
	if len(subject) > maxReadable {
		return false
	}
	for i := range len(subject) {
		if !safe[subject[i]] {
			return false
		}
	}
	return true
}

// safe are the bytes that have no meaning to Redis, to a shell or to a log.
var safe = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_=@/+,") {
		set[c] = true
	}
	return set
}()

// Span writes a duration with safe characters and no zero units: 1h, 1.5us.
func Span(d time.Duration) string {
	s := strings.ReplaceAll(d.String(), "µ", "u")
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
