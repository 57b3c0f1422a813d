package adapter

import "strings"

// Wildcard is the name by which every adapter's Param finds what the "{...}" at the end of
// a route matched, without the slash before it.
const Wildcard = "..."

// SplitTarget splits a request target (RFC 9112 section 3.2) into the path and the query,
// both as they were sent. A target in absolute form loses its scheme and authority. The
// target "*" is its own path. A target in authority form has no path.
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
