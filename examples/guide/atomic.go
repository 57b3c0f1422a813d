package guide

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
)

var (
	//go:embed two_limits_usual.lua
	twoLimitsLua string
	//go:embed seat_usual.lua
	usualSeatLua string
	//go:embed seat.lua
	seatLua string
)

var (
	twoLimits = redis.NewScript(twoLimitsLua)
	usualSeat = redis.NewScript(usualSeatLua)
	seat      = redis.NewScript(seatLua)
)

// AllowTwo admits 100 a minute and 5 a day.
func AllowTwo(ctx context.Context, rdb redis.Scripter, key string) (bool, error) {
	keys := []string{"{" + key + "}:minute", "{" + key + "}:day"}
	return twoLimits.Run(ctx, rdb, keys, 100, 60_000, 5, 86_400_000).Bool()
}

var twoPolicies = []limit.Policy{
	limit.FixedWindow{Name: "minute", Limit: 100, Window: time.Minute},
	limit.FixedWindow{Name: "day", Limit: 5, Window: 24 * time.Hour},
}
