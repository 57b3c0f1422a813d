package guide

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/script/scripttest"
	"github.com/neap-go/neap/internal/redistest"
)

func TestCrossSlot(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "what a cluster says of a script over two keys",
		usual: func(s scene) string {
			_, err := TransferBetween(s.Context(), s.rdb, s.key+":{alice}", s.key+":{bob}", 10)
			return refusal(err)
		},
		breaks: "CROSSSLOT",
		neap: func(s scene) string {
			_, err := Transfer(s.Context(), s.runner(), s.key+":{spring}:alice", s.key+":{spring}:bob", 10)
			return refusal(err)
		},
		holds: "",
	}.run(t, redistest.OnCluster)
}

func TestALaptopDoesNotTell(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "what a laptop says of keys that a cluster will refuse",
		usual: func(s scene) string {
			_, err := TransferBetween(s.Context(), s.rdb, s.key+":{alice}", s.key+":{bob}", 10)
			return refusal(err)
		},
		breaks: "",
		neap: func(s scene) string {
			_, err := Transfer(s.Context(), s.runner(), s.key+":{alice}", s.key+":{bob}", 10)
			return refusal(err)
		},
		holds: "script: refused by configuration",
	}.run(t)
}

func TestAKeyOutsideOfKEYS(t *testing.T) {
	t.Parallel()
	pitfall[string]{
		asks: "what a cluster says of a script that looks up a key's name",
		usual: func(s scene) string {
			leads := s.key + ":{bob}"
			s.must(s.admin.Set(s.Context(), leads, 120, time.Minute).Err())
			s.must(s.admin.Set(s.Context(), s.key+":{leader}", leads, time.Minute).Err())
			return refusal(usualLeader.Run(s.Context(), s.rdb, []string{s.key + ":{leader}"}).Err())
		},
		breaks: "ERR Script attempted to access a non local key in a cluster node",
		neap: func(s scene) string {
			s.must(s.admin.HSet(s.Context(), s.key, "leader", "bob", "bob", 120).Err())
			s.must(s.admin.PExpire(s.Context(), s.key, time.Minute).Err())
			s.rdb = s.admin // neap's own user may not HGET
			points, err := s.runner().Run(s.Context(), leader, []string{s.key})
			if points != "120" {
				s.Errorf("points of the leader: got %v, want 120", points)
			}
			return refusal(err)
		},
		holds: "",
	}.run(t, redistest.OnCluster)
}

func TestANumberInAName(t *testing.T) {
	t.Parallel()
	pitfall[bool]{
		asks: "whether the name of an event has an exponent in it",
		usual: func(s scene) bool {
			name, err := usualName.Run(s.Context(), s.rdb, []string{s.key}, day).Text()
			s.must(err)
			return strings.Contains(name, "e+")
		},
		breaks: true,
		neap: func(s scene) bool {
			s.rdb = s.admin // neap's own user may not SADD
			named, err := s.runner().Run(s.Context(), name, []string{s.key}, day)
			s.must(err)
			return strings.Contains(named.(string), "e+")
		},
		holds: false,
	}.run(t, redistest.OnStandalone) // miniredis prints other numbers
}

func TestTransferLua(t *testing.T) {
	t.Parallel()
	players := []string{"points:{spring}:alice", "points:{spring}:bob"}
	scripttest.Run(t, transfer,
		scripttest.Call{Name: "too few", Keys: players, Args: []any{10, day}, Want: int64(-1)},
		scripttest.Call{Name: "none", Keys: players, Args: []any{0, day}, Want: int64(-1)},
	)
}

func TestPointsAreMoved(t *testing.T) {
	t.Parallel()
	alice, bob := "points:{spring}:alice", "points:{spring}:bob"
	fifty := func(tb testing.TB, rdb redis.UniversalClient, keys []string) {
		if err := rdb.Set(tb.Context(), keys[0], 50, time.Minute).Err(); err != nil {
			tb.Fatal(err)
		}
	}
	have := func(want ...any) func(testing.TB, redis.UniversalClient, []string, any) {
		return func(tb testing.TB, rdb redis.UniversalClient, keys []string, _ any) {
			if got, err := rdb.MGet(tb.Context(), keys...).Result(); err != nil || !slices.Equal(got, want) {
				tb.Errorf("points afterwards: got %v, %v, want %v", got, err, want)
			}
		}
	}
	scripttest.Run(t, transfer,
		scripttest.Call{Name: "to the giver", Keys: []string{alice, alice}, Args: []any{20, day}, Prepare: fifty, Want: int64(-1), Check: have("50", "50")},
		scripttest.Call{Name: "a theft", Keys: []string{alice, bob}, Args: []any{-20, day}, Want: int64(-1), Check: have("50", nil)},
		scripttest.Call{Name: "twenty", Keys: []string{alice, bob}, Args: []any{20, day}, Want: int64(30), Check: have("30", "20")},
	)
}

func TestLeaderLua(t *testing.T) {
	t.Parallel()
	none := func(tb testing.TB, _ redis.UniversalClient, _ []string, reply any) {
		if reply != nil {
			tb.Errorf("without a leader: got %v points, want none", reply)
		}
	}
	scripttest.Run(t, leader, scripttest.Call{Name: "no leader", Keys: []string{"game:{spring}"}, Check: none})
}

// refusal returns the class of neap's error, or the text of another one up to where it
// names a script.
func refusal(err error) string {
	if failed, ok := errors.AsType[*script.Error](err); ok {
		return failed.Class.Error()
	}
	text := said(err)
	if strings.HasPrefix(text, "CROSSSLOT") {
		return "CROSSSLOT"
	}
	text, _, _ = strings.Cut(text, " script:")
	return text
}
