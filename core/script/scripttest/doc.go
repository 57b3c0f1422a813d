// Package scripttest tests Lua scripts for Redis: it runs them on miniredis, on
// a real redis-server and on a cluster, and finds by file and line what works on
// a laptop and fails in production.
//
// [Run] takes a script and calls of it. It fails the test for
//
//   - a key that is not in KEYS: a cluster cannot know where it is. One in
//     another slot the cluster itself refuses as well;
//   - a command about every key there is, such as SCAN. FLUSHALL, FLUSHDB and
//     SWAPDB are not even sent;
//   - a number that reaches Redis or the caller as 1e+15: that is what tostring
//     and .. make of a microsecond, with the last digits gone. Only a real server
//     shows it;
//   - a write that leaves a key without a time to live;
//   - a header that is not true, as [CheckHeader] does alone, or that leaves out a
//     command which the script turns out to write with;
//   - a reply or an error other than the call says.
//
// It sees what the calls have the script do. A line that none of them reaches is
// not tested, and a script that reaches redis through _G, getfenv or loadstring
// fails: Run could not see what it does.
//
// # Servers
//
// The servers are started for the process of tests, on ports of their own, and
// are gone when it ends. They need a redis-server, or a valkey-server, in the
// PATH:
//
//	apt-get install redis-server    # Debian, Ubuntu
//	brew install redis              # macOS
//
// REDIS_SERVER names another binary. Where there is none, the tests on real
// servers are skipped with a line that says so, and under CI=true they fail.
// Starting a server takes a POSIX shell.
//
// Only tests import this package: it compiles miniredis.
package scripttest
