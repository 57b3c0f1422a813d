package gatehttp

import (
	"net/http"
	"slices"
	"strings"

	"github.com/neap-go/neap/core/gate"
)

// Apply puts fields on a response: one that says Add beside the lines that are
// there, any other in their place. What the handler sets later stands over both.
// It takes back what [WriteReply] has marked there: a refusal that was sent is over,
// and one that middleware outside has dropped, to try again, was none.
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

// Fields lists a header as [Apply] would rebuild it: sorted by name, the lines
// of one name in order.
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

// sortedNames puts the names into a slice that has room for the usual number.
func sortedNames(h http.Header, names []string) []string {
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
