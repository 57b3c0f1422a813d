package gate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxSubject bounds what a request can make a gate keep in memory: a longer key is
// refused with a 400.
const maxSubject = 1 << 10

// subject asks key for the subject of a decision, and checks what every gate demands of
// one.
func subject(r Request, key Key) (string, error) {
	s, err := ask(r, key)
	if err != nil {
		return "", err
	}
	if len(s) > maxSubject {
		return "", Refuse(400, "The key of the request is too long")
	}
	return s, nil
}

// ask turns an empty key into an error: it would be one subject for all.
func ask(r Request, key Key) (string, error) {
	s, err := key(r)
	if err == nil && s == "" {
		return "", fmt.Errorf("%w: a Key returned an empty string and no error", ErrWiring)
	}
	return s, err
}

// Tag makes a key of your own safe together with other keys. It marks what the key
// returns as key:kind=…, so that no value of it can pass for a value of another key, in
// [FirstOf] or where two gates share a limiter. The Key functions of the adapters do not
// tag by themselves.
//
// Tag panics on an empty kind and on a nil key.
func Tag(kind string, key Key) Key {
	mustName("Tag", "kind", kind)
	mustKey("Tag", key)
	tag := tagFor("key", kind)
	return func(r Request) (string, error) {
		s, err := ask(r, key)
		if err != nil {
			return "", err
		}
		return tag + s, nil
	}
}

// FirstOf is the first key that the request has, such as an API key, or else the address.
// It skips a key that is missing ([ErrMissing]), and nothing else. A doubled or malformed
// key is refused; otherwise a caller could choose the limit that suits it by breaking its
// own key. If all keys are missing, the answer is the refusal of the first.
//
// A caller chooses among the keys by what it leaves out, so the later ones should not be
// more generous. Put a key of your own into [Tag] here.
//
// FirstOf panics on no keys and on a nil one.
func FirstOf(keys ...Key) Key {
	keys = mustKeys("FirstOf", keys...)
	return func(r Request) (string, error) {
		var first error
		for _, key := range keys {
			s, err := ask(r, key)
			if err == nil || !errors.Is(err, ErrMissing) {
				return s, err
			}
			if first == nil {
				first = err
			}
		}
		return "", first
	}
}

// tagFor returns the kind with which a key's values are marked. The name is escaped, so
// that the first "=" of a subject always ends its kind.
func tagFor(kind, name string) string {
	return kind + ":" + strings.NewReplacer("%", "%25", "=", "%3D").Replace(name) + "="
}

// untagged returns only the value of what a key of this package returned. What Join
// returns has many values and stays as it is. So does what ByValue returns, because a
// key of the user's own can return the same.
func untagged(s string) string {
	tag, value, tagged := strings.Cut(s, "=")
	kind, _, _ := strings.Cut(tag, ":")
	if tagged && kind != "join" && isKind(kind) {
		return value
	}
	return s
}

// isKind reports whether subjects of a key other than ByValue begin with the kind.
func isKind(kind string) bool {
	switch kind {
	case "form", "header", "ip", "join", "json", "key", "param", "path", "query", "route":
		return true
	}
	return false
}

func mustKeys(constructor string, keys ...Key) []Key {
	if len(keys) == 0 {
		panic("gate." + constructor + ": no keys; give one at least")
	}
	for i, key := range keys {
		if key == nil {
			panic("gate." + constructor + ": keys[" + strconv.Itoa(i) + "]" + nilKey)
		}
	}
	return append([]Key(nil), keys...)
}

func mustKey(constructor string, key Key) {
	if key == nil {
		panic("gate." + constructor + ": the key" + nilKey)
	}
}

const nilKey = " is nil; make one with ByIP, ByHeader and their like"

func mustName(constructor, what, name string) {
	if strings.TrimSpace(name) == "" {
		panic("gate." + constructor + ": the " + what + " is empty; say which one")
	}
}
