package gatehttp

import (
	"net/http"
	"strings"

	"github.com/neap-go/neap/core/gate/adapter"
)

// EchoPattern writes a path of Echo, of any version, as gates see it.
func EchoPattern(path string) string {
	var out strings.Builder
	for path != "" {
		switch {
		case strings.HasPrefix(path, `\:`):
			out.WriteByte(':')
			path = path[2:]
		case path[0] == ':':
			name, _, _ := strings.Cut(path[1:], "/")
			out.WriteString("{" + name + "}")
			path = path[1+len(name):]
		case path[0] == '*':
			out.WriteString("{" + adapter.Wildcard + "}")
			path = path[1:]
		default:
			out.WriteByte(path[0])
			path = path[1:]
		}
	}
	return out.String()
}

// Sealed is the writer of a response that is complete. It drops what is written.
type Sealed struct{ http.ResponseWriter }

// WriteHeader drops a status.
func (s Sealed) WriteHeader(int) {}

// Write drops a part of a body.
func (s Sealed) Write(p []byte) (int, error) { return len(p), nil }

// Unwrap lets http.ResponseController reach the connection.
func (s Sealed) Unwrap() http.ResponseWriter { return s.ResponseWriter }
