package ginlimit

import (
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/gatehttp"
)

type request struct {
	gatehttp.Request
	c *gin.Context
}

func newRequest(c *gin.Context) gate.Request {
	return request{gatehttp.Request{HTTP: c.Request}, c}
}

func (q request) Value(key any) any {
	if value, ok := q.c.Get(key); ok {
		return value
	}
	return q.Request.Value(key)
}

func (q request) Route() string { return pattern(q.c.FullPath()) }

func (q request) Param(name string) string {
	route := q.Route()
	if route == "" {
		return ""
	}
	native := q.c.Param(name)
	if name == gatehttp.Wildcard {
		native = strings.TrimPrefix(q.c.Param(wildcard(q.c.FullPath())), "/")
	}
	for _, path := range [...]string{q.HTTP.URL.EscapedPath(), q.Path()} {
		if value := gatehttp.Param(route, path, name); respelled(native, value) {
			return value
		}
	}
	return native
}

// respelled says that native, as Gin hands it out, stands for value, which is
// decoded once. Gin decodes parameters before it routes, after it, or never, as
// its engine is set to, and after it a plus sign becomes a space.
func respelled(native, value string) bool {
	if decoded, err := url.PathUnescape(native); err == nil && decoded == value {
		return true
	}
	plus := strings.NewReplacer("+", " ")
	return plus.Replace(native) == plus.Replace(value)
}

// pattern writes a path of Gin's as gates see it.
func pattern(fullPath string) string {
	segments := strings.Split(fullPath, "/")
	for i, segment := range segments {
		if at := strings.IndexAny(segment, ":*"); at >= 0 {
			name := segment[at+1:]
			if segment[at] == '*' {
				name = gatehttp.Wildcard
			}
			segments[i] = segment[:at] + "{" + name + "}"
		}
	}
	return strings.Join(segments, "/")
}

// wildcard is the name that a path of Gin's gives to the rest of a path, if any.
func wildcard(fullPath string) string {
	_, name, _ := strings.Cut(fullPath, "*")
	return name
}
