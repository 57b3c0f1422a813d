package gate

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/neap-go/neap/internal/isnil"
)

// ByValue is a value that earlier middleware stored under key, such as the signed-in
// user: c.Set in Gin and Echo, Locals in Fiber, a context value anywhere. The value is a
// string, a [fmt.Stringer] or an integer. A missing or empty one is refused with a 401, so a
// wrong key refuses every request. With any other type the answer is a 500, and the hook
// is told ([ErrWiring]).
//
// The result is marked with a kind that is made from key, with its Go package and type.
// It must be the same in every process and version: if you rename the type, all state of
// a limit, a guard or a stock begins from zero. A pointer counts by what it points to.
//
// ByValue panics on nil, and on a key that prints as an address, because that differs in
// every process. For such a key wrap a small function in [Tag] instead.
func ByValue(key any) Key {
	tag := tagFor("value", valueName(key))
	return func(r Request) (string, error) {
		s, ok := identity(r.Value(key))
		if !ok {
			return "", fmt.Errorf("%w: ByValue: the value is a %T, not a string, a fmt.Stringer or an integer", ErrWiring, r.Value(key))
		}
		if s == "" {
			return "", missing(401, "The request is not authenticated")
		}
		return tag + s, nil
	}
}

// valueName names a context key. A string is its own name. Other keys are named by their
// type too, because 0 may be a key of many packages.
func valueName(key any) string {
	switch key := key.(type) {
	case nil:
		panic("gate.ByValue: the key is nil; give the one under which middleware stores the value")
	case string:
		return key
	case fmt.Stringer:
		return fmt.Sprintf("%T(%s)", key, key)
	}
	v := reflect.ValueOf(key)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if !prints(v) {
		panic(fmt.Sprintf("gate.ByValue: a key of type %T has no name that is the same in every process; use Tag with a function that reads the value", key))
	}
	return fmt.Sprintf("%T(%v)", key, v)
}

// prints reports whether v is written the same in every process.
func prints(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !prints(field) {
				return false
			}
		}
		return true
	}
	return false
}

// identity writes a value that identifies somebody. It returns an empty string if there
// is none.
func identity(value any) (s string, ok bool) {
	switch value := value.(type) {
	case nil:
		return "", true
	case string:
		return value, true
	case fmt.Stringer:
		if isnil.Value(value) {
			return "", true
		}
		return value.String(), true
	}
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() == reflect.String:
		return v.String(), true
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), true
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), true
	}
	return "", false
}
