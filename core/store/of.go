package store

import (
	"runtime"
	"sync"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

// Of returns the store that a constructor uses. If rdb is a Store, that is rdb itself.
// Otherwise it is the store of the client, with the zero Options.
//
// A *redis.Client, *redis.ClusterClient, *redis.Ring or *redis.AutoPipeliner has one
// store for as long as anything uses that store or observes it. For any other client,
// each call of Of makes a new store. The registry of stores keeps neither the client nor
// the store alive.
//
// The error matches [script.ErrClient]. Of sends nothing, and is safe for concurrent use.
func Of(rdb script.Client) (*Store, error) {
	switch c := rdb.(type) {
	case *Store:
		if !c.made() {
			return nil, errStore
		}
		return c, nil
	case *redis.Client:
		return shared(c)
	case *redis.ClusterClient:
		return shared(c)
	case *redis.Ring:
		return shared(c)
	case *redis.AutoPipeliner:
		return shared(c)
	}
	return alone(rdb)
}

func alone(rdb script.Client) (*Store, error) {
	calls, err := clientOf(rdb)
	if err != nil {
		return nil, err
	}
	own, err := (*Options)(nil).withDefaults()
	return newStore(rdb, calls, own), err
}

// stores maps the weak pointer of a client to a weak.Pointer[Store]. A store refers to
// its client, so a strong value would keep its own key alive.
var stores struct {
	sync.Mutex

	of map[any]weak.Pointer[Store]
}

// shared returns the store of a client that is identified by its pointer.
func shared[T any, P interface {
	*T
	script.Client
}](rdb P) (*Store, error) {
	key := weak.Make((*T)(rdb))
	stores.Lock()
	defer stores.Unlock()
	if s := stores.of[key].Value(); s != nil {
		return s, nil
	}
	s, err := alone(rdb)
	if err != nil {
		return nil, err
	}
	s.shared = true
	if stores.of == nil {
		stores.of = map[any]weak.Pointer[Store]{}
	}
	value := weak.Make(s)
	stores.of[key] = value
	runtime.AddCleanup(s, forget, entry{key, value})
	return s, nil
}

type entry struct {
	key   any
	value weak.Pointer[Store]
}

// forget runs after a store was collected. Another store may have replaced it by then.
func forget(e entry) {
	stores.Lock()
	defer stores.Unlock()
	if stores.of[e.key] == e.value {
		delete(stores.of, e.key)
	}
}
