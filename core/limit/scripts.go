package limit

import (
	"strconv"
	"strings"
	"sync"

	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

// widths are how many numbers a reading of each kind has.
var widths = map[string]int{"bucket": 1, "fast": 1, "window": 2, "calendar": 3, "sliding": 3, "log": 4, "kept": 4}

func widthOf(r rule) int { return widths[r.kind()] }

// toldWidth returns how many numbers of a rule there are in a reply of limits/take.lua:
// the reading, how many requests the rule does not deny, and for a log the mark.
func toldWidth(r rule) int {
	if r.kind() == "log" {
		return widthOf(r) + 2
	}
	return widthOf(r) + 1
}

const (
	toldOfBan   = 3 // how many numbers of a ban there are
	mostNumbers = 6 // how many numbers limits/take.lua takes for each policy
)

// scripts are those that were made, by their names or shapes. A shape is the kinds of the
// policies in turn, bans and leases.
var scripts sync.Map

// loneScript returns the script of one policy.
func loneScript(r rule) *script.Script {
	kind := r.kind()
	return made("limit_"+kind, func() *script.Script {
		own := script.New(lua.Lone(kind).Name, lua.Lone(kind).Text)
		return merged(own, &wire.Merging{
			Script: (*wire.Script)(takeText([]string{kind}, false, false)), Lead: []any{"1", "1", "0", "0", strconv.Itoa(toldWidth(r)), kind},
			Numbers: mostNumbers, Keys: 1, Own: 1, Told: toldWidth(r), Moves: kind == "calendar",
		})
	})
}

// takeScript returns the script of several policies, or of one with a ban or a lease, that is
// a shadow, or whose reply would not fit into one number.
func takeScript(rules []rule) *script.Script {
	kinds, bans, leases, told, moves := make([]string, 0, len(rules)), 0, 0, 0, false
	for _, r := range rules {
		kinds, told, moves = append(kinds, r.kind()), told+toldWidth(r), moves || isCalendar(r)
		if hasBan(r) {
			bans, told = bans+1, told+toldOfBan
		}
		if hasLease(r) {
			leases++
		}
	}
	shape := strings.Join(kinds, " ") + strings.Repeat(" ban", bans) + strings.Repeat(" lease", leases)
	return made(shape, func() *script.Script {
		own := takeText(kinds, bans > 0, leases > 0)
		if leases > 0 { // each decision names its own estimate
			return own
		}
		return merged(own, &wire.Merging{
			Script: (*wire.Script)(own), Keys: len(rules) + bans, Own: len(rules), Tail: 1, Told: told, Moves: moves,
		})
	})
}

func takeText(kinds []string, bans, leases bool) *script.Script {
	joined := lua.Take(bans, leases, kinds...)
	return made(joined.Name, func() *script.Script { return placed(joined) })
}

// settleScripts returns the script that concludes decisions, and the same for the background.
func settleScripts(rules []rule) (now, late *script.Script) {
	kinds := make([]string, len(rules))
	for i, r := range rules {
		kinds[i] = r.kind()
	}
	joined := lua.Settle(kinds...)
	now = made(joined.Name, func() *script.Script { return placed(joined) })
	return now, made(joined.Name+" late", func() *script.Script { return now.Essential() })
}

func placed(j lua.Joined) *script.Script {
	s := (*wire.Script)(script.New(j.Name, j.Text)).Placed(j.Where)
	return (*script.Script)(s).Batched()
}

func merged(s *script.Script, by *wire.Merging) *script.Script {
	return (*script.Script)((*wire.Script)(s).MergedBy(by))
}

// made returns the script with that name, which join makes the first time.
func made(name string, join func() *script.Script) *script.Script {
	s, is := scripts.Load(name)
	if !is {
		s, _ = scripts.LoadOrStore(name, join())
	}
	return s.(*script.Script)
}
