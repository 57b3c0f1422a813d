package gatehttp

import (
	"net/http"
	"reflect"

	"github.com/neap-go/neap/core/gate"
)

// RequireGate panics when g is nil, or an interface around a nil pointer: a
// route that looks guarded and is not should not start. where names the call.
func RequireGate(where string, g gate.Gate) {
	v := reflect.ValueOf(g)
	switch v.Kind() {
	case reflect.Invalid:
		panic(where + ": the gate is nil")
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		if v.IsNil() {
			panic(where + ": the gate is a nil " + v.Type().String())
		}
	}
}

// Unanswered is the reply of an adapter's Handler when its gate, which is the
// whole endpoint, let the request pass.
func Unanswered() *gate.Reply {
	return &gate.Reply{
		Status: http.StatusInternalServerError,
		Header: []gate.Field{{Name: "Content-Type", Value: "application/problem+json"}},
		Body:   []byte(`{"type":"about:blank","title":"Internal Server Error","status":500}`),
	}
}
