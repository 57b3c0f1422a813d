package guide

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
)

var (
	//go:embed transfer.lua
	transferLua string
	//go:embed leader_usual.lua
	usualLeaderLua string
	//go:embed leader.lua
	leaderLua string
	//go:embed event_name_usual.lua
	usualNameLua string
	//go:embed event_name.lua
	nameLua string
)

var (
	transfer    = script.New("transfer.lua", transferLua)
	usualLeader = redis.NewScript(usualLeaderLua)
	leader      = script.New("leader.lua", leaderLua)
	usualName   = redis.NewScript(usualNameLua)
	name        = script.New("event_name.lua", nameLua)
)

const day = 86_400_000 // milliseconds

// TransferBetween sends the script as go-redis does.
func TransferBetween(ctx context.Context, rdb redis.Scripter, from, to string, points int) (left int, err error) {
	return redis.NewScript(transferLua).Run(ctx, rdb, []string{from, to}, points, day).Int()
}

// Transfer sends the script through neap's runner.
func Transfer(ctx context.Context, runner *script.Runner, from, to string, points int) (left int, err error) {
	reply, err := runner.Run(ctx, transfer, []string{from, to}, points, day)
	if err != nil {
		return 0, err
	}
	err = transfer.Decode(reply, &left)
	return left, err
}
