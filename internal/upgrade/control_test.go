//go:build neap_upgrade

package upgrade

// plants are changes of formats and keys, at least one for each kind of record. A version
// with them shares nothing with others, and each scenario must notice that.
var plants = []plant{
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
