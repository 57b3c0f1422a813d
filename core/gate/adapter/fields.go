package adapter

import (
	"net/http"
	"slices"

	"github.com/neap-go/neap/core/gate"
)

// Fields lists a header, for [gate.Reply.Header]: sorted by name, with the lines of one
// name in order. The first line of a name replaces what was there, and the others are
// added to it.
func Fields(h http.Header) []gate.Field {
	fields := make([]gate.Field, 0, len(h))
	var few [8]string
	names := few[:0]
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for i, value := range h[name] {
			fields = append(fields, gate.Field{Name: name, Value: value, Add: i > 0})
		}
	}
	return fields
}
