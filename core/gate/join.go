package gate

import (
	"strconv"
	"strings"
)

// Join is the key of a request that has all the given keys, such as a tenant and an
// address. Each part is written with its length, so that no two lists of parts make the
// same key. If a part fails, Join fails with the same error.
//
// Join panics on no keys and on a nil one.
func Join(keys ...Key) Key {
	keys = mustKeys("Join", keys...)
	return func(r Request) (string, error) {
		var few [4]string
		parts := few[:0]
		for _, key := range keys {
			part, err := ask(r, key)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return join(parts), nil
	}
}

const joinTag = "join="

// join writes the parts with their lengths, so that no two lists of parts make the same
// subject.
func join(parts []string) string {
	text := append(make([]byte, 0, 128), joinTag...)
	for _, part := range parts {
		text = strconv.AppendInt(text, int64(len(part)), 10)
		text = append(text, ':')
		text = append(text, part...)
	}
	return string(text)
}

// joined reads only what join wrote.
func joined(s string) (parts []string, ok bool) {
	rest, ok := strings.CutPrefix(s, joinTag)
	for ok && rest != "" {
		length, after, found := strings.Cut(rest, ":")
		n, err := strconv.Atoi(length)
		if !found || err != nil || n < 0 || n > len(after) {
			return nil, false
		}
		parts, rest = append(parts, after[:n]), after[n:]
	}
	return parts, len(parts) > 0 && join(parts) == s
}
