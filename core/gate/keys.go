package gate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxSubject bounds what a request may make a gate carry about: a longer key is
// refused with a 400.
const maxSubject = 1 << 10

// subject asks key for the subject of a decision and holds it to what every
// gate demands of one.
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

// Tag makes a key of one's own safe beside others: what it returns is marked
// as key:kind=…, so that no value of it can pass for a value of another key,
// in [FirstOf] or where two gates share a limiter. The Key functions of the
// adapters do not tag by themselves.
//
// It panics on an empty kind and on a nil key.
func Tag(kind string, key Key) Key {
	mustName("Tag", "kind", kind)
	mustKeys("Tag", key)
	tag := tagFor("key", kind)
	return func(r Request) (string, error) {
		s, err := ask(r, key)
		if err != nil {
			return "", err
		}
		return tag + s, nil
	}
}

// FirstOf is the first key that the request carries, such as an API key, else
// the address. It passes over a key that is missing ([ErrMissing]), and over
// nothing else: a doubled or malformed one is refused, or a caller could choose
// the limit that suits it by breaking its own key. When all are missing, the
// first key's refusal is the answer.
//
// A caller chooses among the keys by what it leaves out, so the later ones
// should not be the more generous. A key of one's own belongs into [Tag] here.
//
// It panics on no keys and on a nil one.
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

// tagFor is the kind that a key's values are marked with. Its name is escaped,
// so that the first "=" of a subject always ends its kind.
func tagFor(kind, name string) string {
	return kind + ":" + strings.NewReplacer("%", "%25", "=", "%3D").Replace(name) + "="
}

// untagged is the value alone of what a key of this package returned, where what
// it is for has a name of its own. What Join makes has many values, and stands.
func untagged(s string) string {
	tag, value, tagged := strings.Cut(s, "=")
	kind, _, _ := strings.Cut(tag, ":")
	switch kind {
	case "ip", "route", "path", "header", "param", "query", "form", "json", "value", "key":
		if tagged {
			return value
		}
	}
	return s
}

func mustKeys(constructor string, keys ...Key) []Key {
	if len(keys) == 0 {
		panic("gate." + constructor + ": no keys; give one at least")
	}
	for i, key := range keys {
		if key == nil {
			panic("gate." + constructor + ": key " + strconv.Itoa(i) + " is nil; make one with ByIP, ByHeader and their like")
		}
	}
	return append([]Key(nil), keys...)
}

func mustName(constructor, what, name string) {
	if strings.TrimSpace(name) == "" {
		panic("gate." + constructor + ": the " + what + " is empty; say which one")
	}
}
