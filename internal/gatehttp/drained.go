package gatehttp

import (
	"io"
	"reflect"
)

// drained reports whether a body of unknown length was read to its end. Such a body then
// looks like an empty one. Its reader in net/http notes that for HTTP/1 and 2, but does
// not export it, so drained reads the private field. For a body that others have wrapped
// it reports false, except for the wrappers of net/http.
func drained(body io.Reader) bool {
	v := reflect.ValueOf(body)
	for v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct && v.Elem().Type().PkgPath() == "net/http" {
		reader := v.Elem()
		if saw := reader.FieldByName("sawEOF"); saw.Kind() == reflect.Bool {
			return saw.Bool()
		}
		inner := reader.FieldByName("r")
		if !inner.IsValid() {
			inner = reader.FieldByName("readCloser") // of a request with Expect: 100-continue
		}
		if inner.Kind() != reflect.Interface {
			return false
		}
		v = inner.Elem()
	}
	return false
}
