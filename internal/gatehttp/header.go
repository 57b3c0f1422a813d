package gatehttp

import (
	"net/http"
	"slices"
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

// Fields lists a header as [Apply] would rebuild it: sorted by name, with the lines of
// one name in order.
func Fields(h http.Header) []gate.Field {
	fields := make([]gate.Field, 0, len(h))
	var few [8]string
	for _, name := range sortedNames(h, few[:0]) {
		for i, value := range h[name] {
			fields = append(fields, gate.Field{Name: name, Value: value, Add: i > 0})
		}
	}
	return fields
}

// sortedNames appends the names, sorted, to a slice that has room for the usual number.
func sortedNames(h http.Header, names []string) []string {
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
