package main

import (
	"context"
	"io/fs"
	"strings"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

// evaluates tries EVAL. A user without that right needs the scripts loaded.
func evaluates(ctx context.Context, x *exam, n node, _ map[string]string) verdict {
	within, cancel := x.within(ctx)
	defer cancel()
	err := n.rdb.Eval(within, "return 1", nil).Err()
	lacks := false
	if err == nil && x.ForUser != "" {
		var away error
		if lacks, away = x.mayNot(ctx, n, x.ForUser, "eval"); away != nil {
			return unanswered("ACL DRYRUN", away)
		}
	}
	switch {
	case lacks:
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
		if err != nil && !isReply(err) {
			return unanswered("EVALSHA", err)
		}
		if err != nil && (strings.HasPrefix(err.Error(), "NOSCRIPT") || lackIn(err.Error()) == theCommand) {
			lacking = append(lacking, strings.TrimSuffix(name, ".lua"))
		}
	}
	return withoutEval("this user", lacking)
}

func judgeEval(err error) verdict {
	switch {
	case !isReply(err):
		return unanswered("EVAL", err)
	case lackIn(err.Error()) == theServer:
		return verdict{
			broken: true, detail: "EVAL: " + err.Error(),
			remedy: "install the server's Lua engine, which some distributions have in a package of its own, or use a server that has EVAL: neap decides by scripts alone",
		}
	}
	return verdict{broken: true, detail: "EVAL: " + err.Error(), remedy: whenRefused(err)}
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
	if err != nil && !isReply(err) {
		return unanswered("SCRIPT EXISTS", err)
	}
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
		return verdict{detail: user + " may not EVAL, and the scripts that are files are loaded. Those that `neap script` prints were not looked at"}
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
