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

// AllowInWindow admits ten requests in each window. The script decides when a window
// begins.
func AllowInWindow(ctx context.Context, rdb redis.Scripter, script *redis.Script, key string, length time.Duration) (bool, error) {
	return script.Run(ctx, rdb, []string{key}, 10, length.Milliseconds()).Bool()
}
