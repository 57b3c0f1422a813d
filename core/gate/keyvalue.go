package gate

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/neap-go/neap/internal/isnil"
)

// ByValue is a value that earlier middleware stored under key, such as the signed-in
// user: c.Set in Gin and Echo, Locals in Fiber, a context value anywhere. The value is a
// string, a [fmt.Stringer] or an integer. A missing or empty one is refused with a 401, so a
// wrong key refuses every request. With any other type the answer is a 500, and the hook
// is told ([ErrWiring]).
//
// Subjects begin with name: ByValue("tenant", tenantKey{}) makes tenant=acme. Two keys with
// one name make the same subjects, so give each meaning a name of its own. If you change
// the name, all state of a limit, a guard or a stock begins from zero.
//
// The name has letters a-z, digits, dashes and underscores. It is none of form, header, ip,
// join, json, key, param, path, query and route: other keys begin their subjects with
// these. ByValue panics on any other name, on a nil key and on a key that Go cannot compare.
func ByValue(name string, key any) Key {
	if !isValueName(name) {
		panic(fmt.Sprintf("gate.ByValue: the name %q is empty or has a character other than a-z, 0-9, - and _; choose one such as tenant, which makes subjects such as tenant=acme", name))
	}
	if isKind(name) {
		panic("gate.ByValue: the name " + strconv.Quote(name) + " is reserved, because the subjects of another key begin with it; choose another one")
	}
	if key == nil || !reflect.ValueOf(key).Comparable() {
		panic("gate.ByValue: the key is nil or cannot be compared; give the one under which middleware stores the value")
	}
	tag := name + "="
	return func(r Request) (string, error) {
		value := r.Value(key)
		s, ok := identity(value)
		if !ok {
			return "", fmt.Errorf("%w: ByValue(%q): the value is a %T: store a string, a fmt.Stringer or an integer", ErrWiring, name, value)
		}
		if s == "" {
			return "", missing(401, "The request is not authenticated")
		}
		return tag + s, nil
	}
}

// isValueName reports whether a subject can begin with the name. [Fold] does not change
// such a name.
func isValueName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
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
