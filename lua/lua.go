// Package lua holds the Lua scripts that Redis runs.
//
// A file of FS is exactly the bytes that Redis runs. Its sha1sum is the SHA that EVALSHA
// names. "user_script:12" in an error of Redis is its line 12. You can run it as it is with
// redis-cli --eval. Its header names every key and argument with its unit, what the script
// returns, and what it writes.
//
// The scripts of limits are joined of the files of limits/: [Lone], [Take], [Settle]. What
// Lone returns is a file of FS, too. The command `neap script` prints the others.
//
// A script reads, decides, and then writes or refuses as a whole. It leaves no key without
// a time to live, whichever of its commands fails.
//
// A limit's decision takes effect at most once: neap does not ask for it again if its
// reply was lost. Locks, guards, stock and settlements do ask again. Their scripts know a
// grant by its token, so making the same call twice has the same effect as making it once.
package lua

import "embed"

// FS has the scripts. script.FromFS makes a script from one of its files.
//
//go:embed *.lua
var FS embed.FS

// limits has the parts of the scripts of limits.
//
//go:embed limits/*.lua
var limits embed.FS
