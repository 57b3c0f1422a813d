package gatehttp

import (
	"io"
	"reflect"
)

// drained says of a body of unknown length whether it was read to its end, which
// then looks like that of an empty one. Its reader in net/http has noted it, for
// HTTP/1 and 2, but tells nobody; so it is read from there. Of a body that
// others have wrapped it says no, but for the limit of MaxBytesReader.
func drained(body io.Reader) bool {
	v := reflect.ValueOf(body)
	for v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct && v.Elem().Type().PkgPath() == "net/http" {
		reader := v.Elem()
		if saw := reader.FieldByName("sawEOF"); saw.Kind() == reflect.Bool {
			return saw.Bool()
		}
		inner := reader.FieldByName("r")
		if inner.Kind() != reflect.Interface {
			return false
		}
		v = inner.Elem()
	}
	return false
}
