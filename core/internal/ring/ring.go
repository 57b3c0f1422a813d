// Package ring recognizes clients that must not be used for what has to be decided once.
package ring

import (
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

var ringType = reflect.TypeFor[*redis.Ring]()

// Is reports whether a client is a Ring, or a struct that embeds one.
func Is(rdb script.Client) bool { return embedsRing(reflect.ValueOf(rdb), 0) }

// deepest is how many nested structs are examined, because structs may refer to each
// other in a circle.
const deepest = 16

func embedsRing(v reflect.Value, depth int) bool {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.Type() == ringType {
			return true
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || depth == deepest {
		return false
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous && embedsRing(v.Field(i), depth+1) {
			return true
		}
	}
	return false
}
