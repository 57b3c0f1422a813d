package pictures

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

const (
	noRecord  = "no record"
	pending   = "pending"
	leaseOver = "lease over"
	asking    = "asking"
	free      = "free"
	done      = "done"
	inDoubt   = "in doubt"
	begun     = "begun"
)

var (
	begunStates = []string{pending, leaseOver, asking}
	recorded    = append([]string{free, done, inDoubt}, begunStates...)
)

// guard is the record of core/idempotency.
var guard = &diagram{
	file:  "guard.svg",
	group: begun, members: begunStates,
	arrows: []arrow{
		{noRecord, pending, "begin", moves{"begin": {noRecord}}},
		{pending, pending, "renew", moves{"renew": {pending}, "begin again": {pending}}},
		{asking, asking, "renew", moves{"renew": {asking}, "begin again": {asking}}},
		{pending, leaseOver, "not renewed", moves{"time": {pending}}},
		{leaseOver, pending, "begin (Retry); renew", moves{"begin Retry": {leaseOver}, "begin again": {leaseOver}, "renew": {leaseOver}}},
		{asking, leaseOver, "not renewed", moves{"time": {asking}}},
		{leaseOver, asking, "begin (Reconcile); renew", moves{"begin Reconcile": {leaseOver}, "begin again": {leaseOver}, "renew": {leaseOver}}},
		{begun, done, "complete; resolve", moves{"complete": begunStates, "resolve": {leaseOver}}},
		{free, pending, "begin", moves{"begin": {free}}},
		{begun, free, "abandon; resolve", moves{"abandon free": begunStates, "abandon undo": {pending, leaseOver}, "resolve": {leaseOver}}},
		{begun, inDoubt, "abandon; begin (Reject)", moves{"abandon doubt": begunStates, "abandon undo": {asking, leaseOver}, "begin Reject": {leaseOver}}},
		{inDoubt, asking, "begin (Reconcile)", moves{"begin Reconcile": {inDoubt}}},
		{inDoubt, done, "complete; resolve", moves{"complete": {inDoubt}, "resolve": {inDoubt}}},
		{inDoubt, free, "resolve", moves{"resolve": {inDoubt}}},
	},
	notes: []note{
		{text: "An abandoned run is free if it did nothing, or with Retry. Otherwise it is in doubt."},
		{text: "Resolve ends a begun run only if its lease is over."},
		{"Forget leads from every state to no record, and so does the end of the retention.",
			moves{"forget": recorded, "retention": recorded}, noRecord},
		{"An owner may complete its run even if the record is gone. Then the run is done.",
			moves{"complete": {noRecord}}, done},
	},
}

// TestGuardMovesAsDrawn runs each script, as each that may call it, on a record
// in each state: what changes one is in the picture, and nothing else is.
func TestGuardMovesAsDrawn(t *testing.T) {
	t.Parallel()
	const lease, keep = time.Minute, time.Hour
	begin := script.FromFS(lua.FS, "guard_begin.lua")
	begins := func(name, owner, policy, print string) step {
		return step{name: name, do: func(b *bench) {
			b.call(begin, owner, print, fmt.Sprintf("%d %d %s", lease.Milliseconds(), keep.Milliseconds(), policy))
		}}
	}
	calls := func(name, file string, args ...any) step {
		sc := script.FromFS(lua.FS, file)
		return step{name: name, do: func(b *bench) { b.call(sc, args...) }}
	}
	ms := keep.Milliseconds()
	late := step{name: "time", time: true, do: func(b *bench) { b.pass(lease) }}

	var events []step
	for _, policy := range []string{"Retry", "Reject", "Reconcile"} {
		low := strings.ToLower(policy)
		events = append(events,
			begins("begin "+policy, "other", low, "print"),
			begins("begin again "+policy, "me", low, "print"),
			begins("begin with another print "+policy, "other", low, "another"))
	}
	for _, who := range []string{"me", "other"} {
		by := map[string]string{"other": " by another"}[who]
		events = append(events,
			calls("renew"+by, "guard_renew.lua", who, lease.Milliseconds(), ms),
			calls("complete"+by, "guard_complete.lua", who, "done", ms, 7, 1, "print", "result"),
			calls("complete, without a result"+by, "guard_complete.lua", who, "gone", ms, 7, 1, "print", ""))
		for _, how := range []string{"free", "doubt", "undo"} {
			events = append(events, calls("abandon "+how+by, "guard_abandon.lua", who, how, ms, ms))
		}
	}
	for _, state := range []string{"free", "done", "gone"} {
		events = append(events, calls("resolve "+state, "guard_resolve.lua", "operator", state, ms, ""))
	}
	events = append(events, late,
		calls("forget", "guard_forget.lua"),
		calls("inspect", "guard_inspect.lua"),
		step{name: "retention", time: true, do: func(b *bench) { b.pass(keep) }})

	mine := begins("", "me", "retry", "print")
	asked := []step{begins("", "earlier", "retry", "print"), late, begins("", "me", "reconcile", "print")}
	ends := func(how string, args ...any) step {
		return calls("", "guard_"+how+".lua", args...)
	}
	ways := [][]step{
		{},
		{mine},
		{mine, late},
		asked,
		append(asked[:3:3], late),
		{mine, ends("abandon", "me", "free", ms, ms)},
		{mine, ends("abandon", "me", "doubt", ms, ms)},
		{mine, ends("complete", "me", "done", ms, 7, 1, "print", "result")},
		{mine, ends("complete", "me", "gone", ms, 7, 1, "print", "")},
	}
	record := func(b *bench) string {
		text, err := b.server.Get(key)
		if err != nil {
			return ""
		}
		return fmt.Sprint(text, b.expires())
	}
	where := func(b *bench) string {
		var state string
		var fence, attempt, ends int64
		if _, err := fmt.Sscan(record(b), &state, &fence, &attempt, &ends); err != nil {
			return noRecord
		}
		switch {
		case state == "gone":
			return done
		case state == "doubt":
			return inDoubt
		case ends > 0 && ends <= b.now.UnixMilli():
			return leaseOver
		}
		return state
	}
	same(t, guard, explore(t, ways, events, where, record))
}
