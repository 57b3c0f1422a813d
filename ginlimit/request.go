package ginlimit

import (
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/gate/adapter"
	"github.com/neap-go/neap/internal/gatehttp"
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

func (q request) Route() string { return pattern(q.c.FullPath(), q.c.Params) }

func (q request) Param(name string) string {
	if name == adapter.Wildcard {
		return strings.TrimPrefix(q.c.Param(wildcard(q.c.FullPath())), "/")
	}
	return q.c.Param(name)
}

// pattern writes a path of Gin's as gates see it. Gin does not say which colons were
// escaped in the route; those have no parameter behind them.
func pattern(fullPath string, params gin.Params) string {
	segments := strings.Split(fullPath, "/")
	for i, segment := range segments {
		for at, c := range []byte(segment) {
			name := segment[at+1:]
			if c == '*' {
				name = adapter.Wildcard
			} else if _, known := params.Get(name); c != ':' || !known {
				continue
			}
			segments[i] = segment[:at] + "{" + name + "}"
			break
		}
	}
	return strings.Join(segments, "/")
}

// wildcard is the name that a path of Gin gives to the rest of a path, or "".
func wildcard(fullPath string) string {
	_, name, _ := strings.Cut(fullPath, "*")
	return name
}
