package gatehttp

import (
	"net/url"
	"strings"

	"github.com/neap-go/neap/core/gate/adapter"
)

// Param finds a parameter by its position. route is a pattern as gates see it
// ("/users/{id}", "/files/{...}"), and path is the escaped path that matched it. The
// value is percent-decoded once. A value that cannot be decoded is returned as it was
// sent. Param is empty if the route has no such parameter or does not match the path.
func Param(route, path, name string) string {
	route, path = strings.TrimPrefix(route, "/"), strings.TrimPrefix(path, "/")
	for more := true; more; {
		var pattern, segment string
		pattern, route, more = strings.Cut(route, "/")
		if pattern == "{"+adapter.Wildcard+"}" {
			if name == adapter.Wildcard {
				return unescape(path)
			}
			return ""
		}
		segment, path, _ = strings.Cut(path, "/")
		literal, param, isParam := strings.Cut(pattern, "{")
		switch {
		case !isParam && segment != pattern && unescape(segment) != pattern:
			return ""
		case isParam && !strings.HasPrefix(segment, literal):
			return ""
		case isParam && param == name+"}":
			return unescape(segment[len(literal):])
		}
	}
	return ""
}

func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	decoded, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return decoded
}
