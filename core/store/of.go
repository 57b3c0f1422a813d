package store

import (
	"runtime"
	"sync"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

// Of is the store that a constructor uses: the Store itself if it was given one,
// and otherwise the store of the client, with the zero Options. A *redis.Client,
// *redis.ClusterClient, *redis.Ring or *redis.AutoPipeliner has one store for as
// long as anything uses it; whatever else is given gets a store of its own by each
// call. The registry keeps neither the client nor the store alive.
//
// The error matches [script.ErrClient]. It sends nothing.
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
	if err := check(rdb); err != nil {
		return nil, err
	}
	own, err := (*Options)(nil).withDefaults()
	return newStore(rdb, own), err
}

// stores has the stores of clients, a weak.Pointer[Store] under the client's own
// weak pointer. A store holds its client, so a strong value would keep its key.
var stores struct {
	sync.Mutex

	of map[any]weak.Pointer[Store]
}

// shared is the store of a client that is known by its pointer.
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

// forget runs when a store is gone. Another may stand in its place by then.
func forget(e entry) {
	stores.Lock()
	defer stores.Unlock()
	if stores.of[e.key] == e.value {
		delete(stores.of, e.key)
	}
}
