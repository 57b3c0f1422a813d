package main

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

// evaluates tries EVAL. A user without that right needs the scripts loaded.
func evaluates(ctx context.Context, x *exam, n node, _ map[string]string) verdict {
	within, cancel := x.within(ctx)
	defer cancel()
	err := n.rdb.Eval(within, "return 1", nil).Err()
	switch {
	case err == nil && x.ForUser != "" && x.mayNot(ctx, n, x.ForUser, "eval"):
		return x.loaded(ctx, n)
	case err == nil:
		return verdict{detail: "scripts run"}
	case !strings.HasPrefix(err.Error(), "NOPERM"):
		return judgeEval(err)
	}
	var lacking []string
	for _, name := range scriptNames() {
		// Without a key a script of neap ends with an error before it has written.
		err := n.rdb.EvalSha(within, script.FromFS(lua.FS, name).SHA(), nil).Err()
		if err != nil && (strings.HasPrefix(err.Error(), "NOSCRIPT") || lackIn(err.Error()) == theCommand) {
			lacking = append(lacking, strings.TrimSuffix(name, ".lua"))
		}
	}
	return withoutEval("this user", lacking)
}

func judgeEval(err error) verdict {
	reply := redis.Error(nil)
	switch {
	case !errors.As(err, &reply):
		return unanswered("EVAL", err)
	case lackIn(err.Error()) == theServer:
		return verdict{
			broken: true, detail: "EVAL: " + err.Error(),
			remedy: "install the server's Lua engine, which some distributions have in a package of its own, or use a server that has EVAL: neap decides by scripts alone",
		}
	}
	return verdict{broken: true, detail: "EVAL: " + err.Error(), remedy: "see the log of Redis, or use another server: neap decides by scripts alone"}
}

// loaded looks for the scripts on the server, since the user of --for-user may not EVAL.
func (x *exam) loaded(ctx context.Context, n node) verdict {
	within, cancel := x.within(ctx)
	defer cancel()
	names := scriptNames()
	sums := make([]string, len(names))
	for i, name := range names {
		sums[i] = script.FromFS(lua.FS, name).SHA()
	}
	there, err := n.rdb.ScriptExists(within, sums...).Result()
	if err != nil {
		return verdict{
			detail: "the user " + x.ForUser + " may not EVAL, and whether the scripts are loaded was not looked at: " + err.Error(),
			remedy: "run doctor as a user with the right script|exists",
		}
	}
	var lacking []string
	for i, name := range names {
		if !there[i] {
			lacking = append(lacking, strings.TrimSuffix(name, ".lua"))
		}
	}
	return withoutEval("the user "+x.ForUser, lacking)
}

func withoutEval(user string, lacking []string) verdict {
	if len(lacking) == 0 {
		return verdict{detail: user + " may not EVAL, and all scripts are loaded"}
	}
	return verdict{
		broken: true, detail: user + " may not EVAL, and " + count(len(lacking), "script") + " cannot run, such as " + lacking[0],
		remedy: "give the user +eval, or load the scripts of this version at each deploy (docs/operations.md, Without EVAL)",
	}
}

func scriptNames() []string {
	names, _ := fs.Glob(lua.FS, "*.lua")
	return names
}
