package lock

import (
	"fmt"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

var errRing = fmt.Errorf("%w: rdb is a Ring, whose clients can disagree about which server has a lock, and then two hold it: "+
	"use a Client, a failover Client or a ClusterClient", script.ErrClient)

var ringType = reflect.TypeFor[*redis.Ring]()

// isRing says whether a client is a Ring, or a struct that embeds one.
func isRing(rdb script.Client) bool { return embedsRing(reflect.ValueOf(rdb), 0) }

// deepest is how many structs are looked into, one in the other: they may go
// round.
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
