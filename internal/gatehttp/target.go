package gatehttp

import "strings"

// SplitTarget cuts a request target (RFC 9112 section 3.2) into the path and
// the query as they are on the wire. An absolute-form target loses its scheme
// and authority; "*" is its own path; an authority-form target has none.
func SplitTarget(target string) (path, query string) {
	path, query, _ = strings.Cut(target, "?")
	if strings.HasPrefix(path, "/") || path == "*" {
		return path, query
	}
	_, rest, absolute := strings.Cut(path, "://")
	if !absolute {
		return "", query
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return "/", query
	}
	return rest[slash:], query
}
