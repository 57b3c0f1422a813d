package gatehttp

import (
	"net/http"
	"strings"

	"github.com/neap-go/neap/core/gate"
)

// Apply puts fields on a response. A field with Add is put beside the lines that are
// there; any other field replaces them. What the handler sets later comes on top of both.
//
// Apply also removes the mark that [WriteReply] left in the header. A refusal that was
// sent is over. A refusal that middleware outside has dropped, in order to try again,
// does not count.
func Apply(h http.Header, fields []gate.Field) {
	for name, lines := range h {
		if lines == nil && strings.HasPrefix(name, refusedPrefix) {
			delete(h, name)
		}
	}
	for _, f := range fields {
		if f.Add {
			h.Add(f.Name, f.Value)
		} else {
			h.Set(f.Name, f.Value)
		}
	}
}
