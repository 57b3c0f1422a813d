package limit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// maxReadable is the longest subject that stands in a key as it is.
const maxReadable = 64

// keyspace makes the keys of one limiter:
//
//	<prefix>:<kind>:<name>:{<subject>}:<policy>
//
// The braces make the subject the hash tag, so that all policies of one
// subject share a slot and no byte of a subject can choose another. A subject
// of safe bytes stands as it is; any other is hashed and begins with #, which
// is no safe byte, so the two can never be equal.
type keyspace struct {
	head   string
	secret []byte
}

func newKeyspace(kind, name, prefix string, secret []byte) (keyspace, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	var faults []error
	if strings.ContainsAny(prefix, "{}") || len(prefix) > maxReadable || !printable(prefix) {
		faults = append(faults, fmt.Errorf(
			"Prefix is %.80q: use up to 64 printable ASCII characters without spaces and braces", prefix))
	}
	if err := checkName("name", name); err != nil {
		faults = append(faults, err)
	}
	return keyspace{head: prefix + ":" + kind + ":" + name + ":{", secret: secret}, errors.Join(faults...)
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func (k *keyspace) key(subject, tail string) string {
	if k.secret == nil && readable(subject) {
		return k.head + subject + "}:" + tail
	}
	text := k.hash(subject)
	return k.head + "#" + string(text[:]) + "}:" + tail
}

// subject is the subject as it stands in a key.
func (k *keyspace) subject(subject string) string {
	if k.secret == nil && readable(subject) {
		return subject
	}
	text := k.hash(subject)
	return "#" + string(text[:])
}

func (k *keyspace) hash(subject string) (text [43]byte) {
	var sum [sha256.Size]byte
	if k.secret == nil {
		sum = sha256.Sum256([]byte(subject))
	} else {
		mac := hmac.New(sha256.New, k.secret)
		mac.Write([]byte(subject))
		mac.Sum(sum[:0])
	}
	base64.RawURLEncoding.Encode(text[:], sum[:])
	return text
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

// safe are the bytes that mean nothing to Redis, to a shell or to a log.
var safe = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_=@/+,") {
		set[c] = true
	}
	return set
}()
