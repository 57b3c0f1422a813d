package ring

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

type wrapped struct{ script.Client }

type round struct {
	*round
	script.Client
}

type named struct {
	script.Client
	rdb *redis.Ring // which is not what Process goes to
}

func TestIs(t *testing.T) {
	t.Parallel()
	one := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	many := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	of := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
	t.Cleanup(func() { one.Close(); many.Close(); of.Close() })
	endless := &round{Client: one}
	endless.round = endless
	for name, c := range map[string]struct {
		rdb  script.Client
		want bool
	}{
		"client":               {one, false},
		"cluster":              {many, false},
		"wrapped client":       {&wrapped{one}, false},
		"round and round":      {endless, false},
		"beside it":            {named{one, of}, false},
		"nothing":              {nil, false},
		"nothing wrapped":      {wrapped{}, false},
		"ring":                 {of, true},
		"no ring":              {(*redis.Ring)(nil), true},
		"embedded":             {struct{ *redis.Ring }{of}, true},
		"in an interface":      {&struct{ redis.UniversalClient }{of}, true},
		"two deep":             {struct{ *wrapped }{&wrapped{of}}, true},
		"ring beside its loop": {&round{Client: of}, true},
	} {
		if got := Is(c.rdb); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
