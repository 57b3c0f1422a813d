// Package scripttest tests Lua scripts for Redis. It runs them on miniredis, on a real
// redis-server and on a cluster. It finds what works on a laptop and fails in production,
// and reports it by file and line.
//
//	func TestHighest(t *testing.T) {
//		scripttest.Run(t, highest,
//			scripttest.Call{Keys: []string{"score:{user-17}"}, Args: []any{7, 60_000}, Want: 7},
//			scripttest.Call{Keys: []string{"score:{user-17}"}, Args: []any{3, 60_000}, Want: 7},
//		)
//	}
//
// # What it finds
//
// [Run] makes calls of a script. It fails the test for
//
//   - a key that is not in KEYS, because a cluster cannot know where it is. If the key is
//     in another slot, the cluster itself refuses it too;
//   - a command about all keys there are, such as SCAN. FLUSHALL, FLUSHDB and SWAPDB are
//     not even sent;
//   - a number that reaches Redis or the caller as 1e+15. That is what tostring and ..
//     make of a time in microseconds; the last digits are lost. Only a real server shows
//     it;
//   - a write that leaves a key without a time to live;
//   - a header that is not true, as [CheckHeader] does by itself, or that does not name a
//     command with which the script writes;
//   - a reply or an error that is not what the call expects;
//   - an error that the script returns and that its callers would take for a proxy's, if the
//     call has Fails.
//
// # Where the guarantee ends
//
// Run sees only what the script does in these calls. A line that no call reaches is not
// tested. A script that uses _G, getfenv or loadstring fails, because Run cannot see what
// the script does through them.
//
// # Servers
//
// The servers are started for the process of tests, on ports of their own, and are gone
// when it ends. They need a redis-server or a valkey-server in the PATH:
//
//	apt-get install redis-server    # Debian, Ubuntu
//	brew install redis              # macOS
//
// REDIS_SERVER names another binary. If there is none, the tests on real servers are
// skipped with a line that says so; with CI=true they fail instead. Starting a server
// needs a POSIX shell.
//
// Import this package only in tests: it compiles miniredis.
package scripttest
