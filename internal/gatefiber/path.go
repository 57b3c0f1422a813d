package gatefiber

import (
	"strings"

	"github.com/neap-go/neap/core/gate/adapter"
)

// Wildcard is the name that Fiber gives to the first wildcard of a route.
func Wildcard(params []string) string {
	for _, name := range params {
		if strings.HasPrefix(name, "*") || strings.HasPrefix(name, "+") {
			return name
		}
	}
	return ""
}

const (
	startsParam = ":*+"
	endsParam   = `?:\/-.`
)

// Pattern writes a path of Fiber as gates see it: ":id", ":id?" and ":id<int>" as "{id}",
// and "*" and "+" as "{...}".
func Pattern(path string) string {
	var out strings.Builder
	for path != "" {
		switch {
		case path[0] == '\\' && len(path) > 1:
			out.WriteByte(path[1])
			path = path[2:]
		case !isParam(path):
			out.WriteByte(path[0])
			path = path[1:]
		case path[0] == ':':
			name := path[1:]
			if end := strings.IndexAny(name, endsParam+"<"); end >= 0 {
				name = name[:end]
			}
			out.WriteString("{" + name + "}")
			path = strings.TrimPrefix(afterConstraint(path[1+len(name):]), "?")
		default:
			out.WriteString("{" + adapter.Wildcard + "}")
			path = path[1:]
		}
	}
	return out.String()
}

// isParam reports whether path begins with a parameter. If two characters in a row
// could start one, Fiber takes the first literally: "color::color".
func isParam(path string) bool {
	starts := func(i int) bool { return i < len(path) && strings.IndexByte(startsParam, path[i]) >= 0 }
	return starts(0) && (path[0] == '*' || !starts(1))
}

// afterConstraint returns path without the constraint, such as "<int>", that it begins
// with. A regular expression in a constraint may have any of the characters that
// otherwise end a parameter.
func afterConstraint(path string) string {
	if !strings.HasPrefix(path, "<") {
		return path
	}
	for i := range path {
		if path[i] == '>' && (i+1 == len(path) || strings.IndexByte(endsParam, path[i+1]) >= 0) {
			return path[i+1:]
		}
	}
	return ""
}
