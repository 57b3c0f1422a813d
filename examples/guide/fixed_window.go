package guide

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed fixed_window_usual.lua
	usualWindowLua string
	//go:embed fixed_window.lua
	windowLua string
)

var (
	usualWindow = redis.NewScript(usualWindowLua)
	window      = redis.NewScript(windowLua)
)

// AllowInWindow admits ten in each window, which begins as the script says.
func AllowInWindow(ctx context.Context, rdb redis.Scripter, script *redis.Script, key string, length time.Duration) (bool, error) {
	return script.Run(ctx, rdb, []string{key}, 10, length.Milliseconds()).Bool()
}
