package keyspace

import (
	"regexp"
	"strings"
)

// Parts are the parts of a key: the arguments of [New] and [Space.Key], except that the
// subject is as it appears in the key.
type Parts struct {
	Kind, Name, Subject, Tail string
}

// hashed matches a subject that is a hash.
var hashed = regexp.MustCompile(`^#[A-Za-z0-9_-]{43}$`)

// Parse parses a key. ok is true only for keys that a space with this prefix can have
// made.
func Parse(prefix, key string) (p Parts, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix+":")
	if !ok {
		return Parts{}, false
	}
	head, rest, ok1 := strings.Cut(rest, ":{")
	kind, name, ok2 := strings.Cut(head, ":")
	subject, tail, ok3 := strings.Cut(rest, "}")
	if tail != "" {
		colon := tail[0] == ':' && len(tail) > 1
		tail, ok3 = tail[1:], ok3 && colon
	}
	if !ok1 || !ok2 || !ok3 || kind == "" || CheckName("name", name) != nil || subject == "" || !readable(subject) && !hashed.MatchString(subject) {
		return Parts{}, false
	}
	return Parts{kind, name, subject, tail}, true
}
