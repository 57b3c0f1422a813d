// Package isnil finds the nil in an interface.
package isnil

import "reflect"

// Value says that v is nil, or holds a nil pointer, function, map, slice or
// channel.
func Value(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return r.IsNil()
	}
	return false
}
