// Package lua holds the scripts, one file per decision.
//
// A file is exactly the bytes that Redis runs: its sha1sum is the SHA that
// EVALSHA names, "user_script:12" in an error of Redis is its line 12, and
// redis-cli --eval runs it as it stands. Its header names every key and
// argument with units, what it returns, and what it writes.
//
// Each reads, decides, and then writes or refuses as a whole, and leaves no key
// without a time to live, whichever of its commands fails. A limit's decision
// takes effect at most once, because core/script never sends a call again whose
// reply was lost. Locks, guards and stock ask again by design: their scripts know
// a grant by its token, so the same call twice has the effect of one.
package lua

import "embed"

// FS has the scripts. script.FromFS makes one of them ready to run.
//
//go:embed *.lua
var FS embed.FS
