package pictures

import (
	"fmt"
	"testing"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

const (
	held   = "held"
	lapsed = "lapsed"
	forced = "forced open"
	taken  = "taken"
)

var takenStates = []string{held, lapsed}

// lock is the record of core/lock.
var lock = &diagram{
	file:  "lock.svg",
	group: taken, members: takenStates,
	arrows: []arrow{
		{noRecord, held, "acquire", moves{"acquire": {noRecord}}},
		{held, held, "acquire by its owner; extend; hand on", moves{"acquire by its owner": {held}, "extend": {held}, "hand on": {held}}},
		{held, lapsed, "not renewed", moves{"time": {held}}},
		{lapsed, held, "acquire", moves{"acquire": {lapsed}}},
		{free, held, "acquire", moves{"acquire": {free}}},
		{taken, free, "release of the last hold", moves{"release": takenStates, "hand on": {lapsed}}},
		{forced, held, "acquire", moves{"acquire": {forced}}},
		{taken, forced, "force", moves{"force": takenStates}},
	},
	notes: []note{
		{text: "Each grant has a larger fence than all before it. The owner's later holds share it."},
		{text: "Hand on: release a lock, before it lapses, to the next caller in the same process."},
		{"Releasing a hold that is not the owner's last one leaves the lock as it is.",
			moves{"release": takenStates}, ""},
		{"A record is gone after FenceRetention without a request.",
			moves{"retention": {held, lapsed, free, forced}}, noRecord},
	},
}

// TestLockMovesAsDrawn is the same for locks: of one hold, of two of an owner,
// and of an owner without a name.
func TestLockMovesAsDrawn(t *testing.T) {
	t.Parallel()
	const ttl, keep = time.Minute, time.Hour
	acquire, release := script.FromFS(lua.FS, "lock_acquire.lua"), script.FromFS(lua.FS, "lock_release.lua")
	extend, force := script.FromFS(lua.FS, "lock_extend.lua"), script.FromFS(lua.FS, "lock_force.lua")
	inspect := script.FromFS(lua.FS, "lock_inspect.lua")
	acquires := func(name, owner, hold string) step {
		return step{name: name, do: func(b *bench) { b.call(acquire, owner, hold, ttl.Milliseconds(), keep.Milliseconds(), "") }}
	}
	fence := func(b *bench) string { return b.server.HGet(key, "fence") }
	on := func(name string, sc *script.Script, hold string, more ...any) step {
		return step{name: name, do: func(b *bench) {
			of := fence(b)
			if of == "" {
				of = "7"
			}
			b.call(sc, append([]any{hold, of}, more...)...)
		}}
	}
	opens := step{name: "force", do: func(b *bench) { b.call(force) }}
	lapses := step{name: "time", time: true, do: func(b *bench) { b.pass(ttl) }}

	record := func(b *bench) string {
		fields, _ := b.server.HKeys(key)
		text := ""
		for _, f := range fields {
			text += f + "=" + b.server.HGet(key, f) + " "
		}
		if text == "" {
			return ""
		}
		return fmt.Sprint(text, b.expires())
	}
	where := func(b *bench) string {
		switch {
		case record(b) == "":
			return noRecord
		case b.server.HGet(key, "ttl") == "" && b.server.HGet(key, "owner") != "":
			return forced
		case b.server.HGet(key, "ttl") == "":
			return free
		case b.server.TTL(key) <= keep:
			return lapsed
		}
		return held
	}
	moved := map[met]bool{}
	for _, me := range []struct{ owner, hold, other string }{{"me", "first", "second"}, {"me", "me", ""}} {
		mine := acquires("", me.owner, me.hold)
		ways := [][]step{
			{},
			{mine},
			{mine, lapses},
			{mine, on("", release, me.hold)},
			{mine, opens},
			{mine, lapses, opens},
		}
		events := []step{
			acquires("acquire by its owner, the same hold", me.owner, me.hold),
			acquires("acquire by another", "somebody", "somebody"),
			acquires("acquire by another with a name", "somebody", "hold"),
			on("extend", extend, me.hold, ttl.Milliseconds()),
			on("extend of a strange hold", extend, "strange", ttl.Milliseconds()),
			on("release", release, me.hold),
			on("release of a strange hold", release, "strange"),
			opens, lapses,
			{name: "inspect", do: func(b *bench) { b.call(inspect) }},
			{name: "retention", time: true, do: func(b *bench) { b.pass(ttl + keep) }},
		}
		if me.other != "" {
			both := []step{mine, acquires("", me.owner, me.other)}
			ways = append(ways, both, append(both, lapses))
			events = append(events, acquires("acquire by its owner, another hold", me.owner, me.other))
		} else {
			events = append(events, on("hand on", release, me.hold, "successor", ttl.Milliseconds(), keep.Milliseconds()))
		}
		for m := range explore(t, ways, events, where, record) {
			moved[m] = true
		}
	}
	same(t, lock, moved)
}
