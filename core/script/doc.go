// Package script runs a Lua script on Redis at most once, within a bounded time, and says
// how the call ended.
//
//	//go:embed best.lua
//	var files embed.FS
//
//	var best = script.FromFS(files, "best.lua")
//
//	runner, err := script.NewRunner(rdb, nil)
//	if err != nil {
//		return err
//	}
//	reply, err := runner.Run(ctx, best, []string{"{user:17}:score"}, 42)
//
// A go-redis client sends a command again if its reply was lost. That can run a script up
// to four times, and sixteen times on a cluster. It also waits up to ten seconds for a
// server that has stalled. Neither is right for a script that takes a permit or a lock.
//
// A [Runner] sends every script without retries. It makes a call again only if Redis said
// that nothing ran. It gives up when its budget is spent, whatever the client's options
// are.
//
// [Script.Decode] puts a reply into a struct. Package scripttest finds in a test what
// would fail in production. [A script of your own] shows how you write, test and run one.
//
// # Where the guarantee ends
//
// A script whose reply is lost ran once or not at all, and no client can know which: see
// [ErrMaybeExecuted]. A failover that loses acknowledged writes loses what scripts wrote.
//
// [A script of your own]: https://github.com/neap-go/neap/blob/main/docs/own-scripts.md
package script
