//go:build neap_upgrade

package upgrade

import (
	"slices"
	"strings"
)

// mutations are changes of formats and keys, at least one for each kind of record. A version
// with them shares nothing with others, and each scenario must notice that.
var mutations = []mutation{
	// The state of a limit: a sliding window's two counters and a bucket's debt are
	// stored otherwise, and the others are kept under other keys.
	{"core/limit/policy.go", `"(window|log|sliding|bucket)-%d`, `"${1}s-%d`},
	{"core/limit/calendar.go", `"calendar-%d`, `"calendars-%d`},
	{"core/limit/kept.go", `"!kept-"`, `"!keeps-"`},
	{"core/limit/concurrency.go", `tail: span\(own\.Lease\)`, `tail: span(own.Lease) + "s"`},
	// The record of a ban.
	{"core/limit/ban.go", `"ban-%d`, `"bans-%d`},
	// The fields of a lock.
	{"lua/lock_*.lua", `'ttl'`, `'lease'`},
	{"lua/once_*.lua", `'ttl'`, `'lease'`},
	{"lua/once_*.lua", `'open'`, `'through'`},
	// The states of a guard's record.
	{"lua/guard_*.lua", `'done'`, `'through'`},
	{"lua/guard_*.lua", `'pending'`, `'begun'`},
	{"core/idempotency/outcome.go", `= "done"`, `= "through"`},
	{"core/idempotency/outcome.go", `= "pending"`, `= "begun"`},
	// A stored response, and the key of a callback's event.
	{"core/gate/storedreply.go", `storedVersion = 1`, `storedVersion = 2`},
	{"core/callback/providers.go", `"sha256="`, `"sha-256="`},
	// The counts of an item.
	{"lua/stock_*.lua", `'left'`, `'rest'`},
}

// contents are changes of what the records of limits contain, under the same keys.
var contents = []mutation{
	{"lua/limit_window.lua", `used = stored \+ 0`, `used = stored - 7`},
	{"lua/limit_window.lua", `'SET', key, cost,`, `'SET', key, cost + 7,`},
	{"lua/limit_calendar.lua", `used = stored \+ 0`, `used = stored - 7`},
	{"lua/limit_calendar.lua", `'SET', key, cost,`, `'SET', key, cost + 7,`},
	{"lua/limit_sliding.lua", `local base = (.*) \+ 1`, `local base = $1 + 2`},
	{"lua/limit_bucket.lua", `debt = left \* drain`, `debt = left * drain / 2`},
	{"lua/limit_bucket.lua", `\(after \+ slack\) / drain`, `(after + slack) / drain * 2`},
	{"lua/limit_bucket_fast.lua", `(clock\[1\] \* 1000000 \+ clock\[2\])`, `($1 + 700000)`},
	{"lua/limit_bucket_kept.lua", `(clock\[1\] \* 1000000 \+ clock\[2\])`, `($1 + 700000)`},
	{"lua/limit_log.lua", `(clock\[1\] \* 1000000 \+ clock\[2\])`, `($1 + 700000)`},
}

// ofContents says whether a scenario must notice the contents.
func ofContents(s scenario) bool {
	return strings.HasPrefix(s.name, "time-") || slices.Contains([]string{"limit-window", "limit-window-kept", "limit-calendar", "limit-bucket"}, s.name)
}
