package lua_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/script/scripttest"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

var (
	inAnHour = time.Now().Add(time.Hour).UnixMilli()
	most     = int64(1_000_000_000_000)
	opened   = made{script.FromFS(lua.FS, "stock_open.lua").Source(), []any{most, inAnHour, 7_200_000, "t"}}
	held     = made{script.FromFS(lua.FS, "stock_reserve.lua").Source(), []any{"ann", "1", 2, 60_000, "t"}}
	lapsed   = made{script.FromFS(lua.FS, "stock_reserve.lua").Source(), []any{"bob", "1", most - 2, 1, "t"}}
	sold     = made{script.FromFS(lua.FS, "stock_reserve.lua").Source(), []any{"ann", "1", 2, "0", "t"}}
	crowded  = made{script.FromFS(lua.FS, "stock_reserve.lua").Source(), []any{"ann", "1", 2, 60_000, strings.Repeat("t", 183)}} // as long as eight tokens
)

// item makes a call on an item to which this was done before.
func item(before ...made) func(args ...any) scripttest.Call {
	return func(args ...any) scripttest.Call {
		c := on(one, args...)
		c.Prepare = func(tb testing.TB, rdb redis.UniversalClient, keys []string) {
			tb.Helper()
			rdb.Del(tb.Context(), keys...)
			for _, s := range before {
				if err := rdb.Eval(tb.Context(), s.source, keys, s.args...).Err(); err != nil {
					tb.Fatal(err)
				}
			}
			began := rdb.Time(tb.Context()).Val()
			redistest.Await(tb, 30*time.Second, "the lease of what is to lapse to be over", func() bool {
				return rdb.Time(tb.Context()).Val().Sub(began) > 2*time.Millisecond
			})
		}
		return c
	}
}

func init() { //nolint:gochecknoinits // the calls are one map
	fresh, busy, shop := item(opened), item(opened, held), item(opened, sold)
	for name, all := range map[string][]scripttest.Call{
		"open": {on(one, most, inAnHour, 7_200_000, "t"), on(one, most, inAnHour, 7_200_000, "u"), on(one, 1, 1, 7_200_000, "t")},
		"reserve": {
			on([]string{"{none}"}, "ann", "1", 2, 60_000, "t"), fresh("ann", "1", most, "0", "t"), fresh("ann", "1", most, 60_000, "t"),
			busy("ann", "1", 2, 60_000, "u"), busy("ann", "1", 2, "0", "u"), busy("ann", "2", 2, "0", "t"), busy("bob", "1", most, "0", "t"),
			shop("ann", "1", 2, 60_000, "u"), item(opened, lapsed)("cid", "1", 9, "0", "t"), item(opened, lapsed)("bob", "1", 9, 60_000, "t"),
			item(opened, crowded)("ann", "1", 2, 60_000, "u"), item(opened, crowded)("ann", "1", 2, "0", "u"), item(opened, crowded)("ann", "1", 2, "", "u"),
		},
		"renew":   {fresh(60_000, "ann", "1", "t"), busy(60_000, "ann", "1", "t"), shop(60_000, "ann", "1", "t", "bob", "1", "t")},
		"cancel":  {fresh("ann", "1", "t"), busy("ann", "1", "t"), shop("ann", "1", ""), item(opened, held, made{script.FromFS(lua.FS, "stock_reserve.lua").Source(), []any{"ann", "1", 2, 60_000, "u"}})("ann", "1", "t")},
		"sweep":   {fresh("0"), busy("0"), item(opened, lapsed, held)("0"), item(opened, held, lapsed)("0"), item(opened, held, lapsed)("2")},
		"restock": {fresh(5, "monday", 9_000_000_000_000), busy(5, "monday", most), on(one, 5, "monday", most)},
		"left":    {fresh(), busy(), shop(), item(opened, lapsed)()},
		"buyers":  {fresh("0", 100), busy("0", 100), shop("0", 100), item(opened, lapsed)("0", 100)},
		"forget":  {on(one), busy()},
	} {
		calls["stock_"+name+".lua"] = all
	}
}
