package gate

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/neap-go/neap/internal/isnil"
)

// ByValue is a value that earlier middleware stored under key, such as the
// signed-in user: c.Set in Gin and Echo, Locals in Fiber, a context value
// anywhere. The value is a string, a [fmt.Stringer] or an integer; a missing or
// empty one is refused with a 401, any other type answered with a 500 and told
// to the hook ([ErrWiring]).
//
// The kind that marks the result is made from key, with its Go package and type, and must be
// the same in every process and version: if you rename the type, all state of a limit, a
// guard or a stock begins afresh. A key that prints as an address will not do. ByValue panics on
// such a key, and on nil; wrap a small function in [Tag] instead. A pointer
// counts by what it points to.
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

// valueName names a context key: strings by themselves, others by their type
// too, since 0 may be a key of many packages.
func valueName(key any) string {
	switch key := key.(type) {
	case nil:
		panic("gate.ByValue: the key is nil; give the one that middleware stores under")
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

// prints says whether v is written alike in every process.
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

// identity writes a value that identifies somebody; empty when there is none.
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
