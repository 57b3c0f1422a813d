package gate

import (
	"encoding/hex"
	"fmt"
	"net/textproto"
	"net/url"
	"strings"
)

// ByHeader is the value of a header field, such as an API key. The request must have
// exactly one line of it. A missing or empty line is refused with a 400. So are two
// lines: the server might check one of them and count the other.
//
// ByHeader does not check that the value is a good one. Mount the gate behind the check,
// or limit by [ByIP] as well. Otherwise a caller that makes up a new value for each
// request is never limited. The value may be readable in Redis; the option SubjectSecret
// of a store hashes it.
//
// ByHeader panics on a name that is no field name.
func ByHeader(name string) Key {
	if !isToken(name) {
		panic(fmt.Sprintf("gate.ByHeader: %q is no header field name; write one like X-Api-Key", name))
	}
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	tag := tagFor("header", strings.ToLower(name))
	absent := missing(400, "The request lacks the header field "+canonical)
	doubled := Refuse(400, "The request has more than one header field "+canonical)
	return func(r Request) (string, error) {
		lines := r.Header(canonical)
		if canonical == "Host" { // net/http takes it out of the header
			lines = []string{r.Host()}
		}
		switch {
		case unsure(r, canonical):
			return "", errTrailer
		case len(lines) > 1:
			return "", doubled
		case len(lines) == 0:
			return "", absent
		}
		value := strings.Trim(lines[0], " \t") // RFC 9110 section 5.5
		if value == "" {
			return "", absent
		}
		return tag + value, nil
	}
}

// ByRoute is the pattern that the request matched: "/users/{id}" is one key for all
// users, whatever the method. Join it with another key for a limit on each caller and
// route.
//
// If the framework does not know the route yet, as in middleware that runs before the
// router, the answer is a 500 and the hook is told ([ErrWiring]). The same happens to a
// path that no route matches, if the gate is mounted around all routes. So mount a gate
// with ByRoute on the routes themselves, or on their group if the framework knows the
// route there: Gin and Echo do, Fiber does not.
func ByRoute() Key {
	return func(r Request) (string, error) {
		route := r.Route()
		if route == "" {
			return "", noRoute(r, "ByRoute")
		}
		return "route=" + route, nil
	}
}

func noRoute(r Request, key string) error {
	if err := lacks(r, key, "Route"); err != nil {
		return err
	}
	return &miswired{key + " needs the route of the request, which the framework does not know here: mount the gate on the route itself; " +
		"behind nethttp, a router other than http.ServeMux and chi must also tell its route to net/http, as docs/neighbours.md shows"}
}

// ByPath is the path of the request, without the query. Spellings that differ only in
// percent-encoding are one key (RFC 3986 section 6.2.2). A path whose encoding is broken
// is refused with a 400.
//
// A path has a key of its own even if the router treats it like another one, for example
// in another case or with another slash. If there are many paths, or the caller can
// choose them, [ByRoute] is the better key.
func ByPath() Key {
	return func(r Request) (string, error) {
		path, ok := canonicalPath(r.Path())
		if !ok {
			return "", Refuse(400, "The path of the request is not well encoded")
		}
		if path == "" {
			path = "/"
		}
		return "path=" + path, nil
	}
}

// canonicalPath decodes and encodes each segment separately: an encoded slash is not a
// slash.
func canonicalPath(path string) (string, bool) {
	if strings.IndexFunc(path, func(c rune) bool { return c != '/' && !isUnreserved(c) }) < 0 {
		return path, true
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return "", false
		}
		segments[i] = url.PathEscape(decoded)
	}
	return strings.Join(segments, "/"), true
}

// isUnreserved reports whether c is unreserved (RFC 3986 section 2.3).
func isUnreserved(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-._~", c)
}

// ByParam is a parameter of the route: ByParam("id") for "/users/{id}", and
// ByParam("...") for what the wildcard of "/files/{...}" matched. Two routes that both
// have an {id} and share a limiter share its keys; join with [ByRoute] to keep them
// apart.
//
// The key is the value that the handler gets, with all percent-encoding undone. Gin and
// net/http decode parameters. Fiber and Echo as a rule return them as they were sent, and
// the handler may decode them or not. So all spellings that a handler can take for one
// value are one key, behind every framework: "%2541", "%41" and "A" are.
//
// What else the framework does to a value is in the key. Gin with UseRawPath or
// UseEscapedPath, and Fiber with UnescapePath, turn a plus sign into a space, so there
// "a+b" and "a%20b" are one key. If a handler does that itself, with [url.QueryUnescape],
// the two stay two keys.
//
// If the framework does not know the route yet, or the route has no such parameter, the
// answer is a 500 and the hook is told ([ErrWiring]). An empty parameter is refused with
// a 400.
//
// ByParam panics on an empty name.
func ByParam(name string) Key {
	mustName("ByParam", "name", name)
	tag := tagFor("param", name)
	return func(r Request) (string, error) {
		route := r.Route()
		if route == "" {
			return "", noRoute(r, "ByParam")
		}
		if !strings.Contains(route, "{"+name+"}") {
			return "", &miswired{fmt.Sprintf("ByParam: the route %s has no parameter %q: name one that it has, or read the value with a key of your own", route, name)}
		}
		value := percentFree(r.Param(name))
		if value == "" {
			return "", missing(400, "The path lacks its parameter "+name)
		}
		return tag + value, nil
	}
}

// percentFree undoes percent-encoding as long as there is any, in one pass: a byte that
// was decoded may complete another encoded one.
func percentFree(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		out = append(out, s[i])
		for n := len(out); n >= 3 && out[n-3] == '%'; n = len(out) {
			decoded, err := hex.DecodeString(string(out[n-2:]))
			if err != nil {
				break
			}
			out = append(out[:n-3], decoded[0])
		}
	}
	return string(out)
}

// ByQuery is a parameter of the query. It must be there exactly once and not be empty. No
// other name may differ from it only in case or brackets, such as Name[], because some
// parsers take these for the same. The whole query must be well encoded. Otherwise the
// request is refused with a 400.
//
// ByQuery panics on an empty name.
func ByQuery(name string) Key {
	mustName("ByQuery", "name", name)
	tag := tagFor("query", name)
	return func(r Request) (string, error) {
		values, err := queryValues(r, name)
		if err != nil {
			return "", err
		}
		return one(values, tag, "query parameter "+name)
	}
}

// queryValues refuses the whole query if it is broken anywhere: parsers disagree about
// the rest of it.
func queryValues(r Request, name string) ([]string, error) {
	query, err := url.ParseQuery(r.RawQuery())
	if err != nil {
		return nil, Refuse(400, "The query of the request is not well encoded")
	}
	return valuesOf(query, name)
}

// one returns the key of a value that must be there exactly once. If there are several,
// it depends on the framework which one a handler gets.
func one(values []string, tag, what string) (string, error) {
	switch {
	case len(values) > 1:
		return "", Refuse(400, "The request has more than one "+what)
	case len(values) == 0 || values[0] == "":
		return "", missing(400, "The request lacks the "+what)
	}
	return tag + values[0], nil
}

// isToken reports whether s is a token (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		return !isUnreserved(c) && !strings.ContainsRune("!#$%&'*+^`|", c)
	}) < 0
}
