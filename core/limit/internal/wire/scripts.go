package wire

import (
	"strconv"
	"strings"
	"sync"

	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/limit/internal/kind"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/lua"
)

// toldWidth returns how many numbers of a rule there are in a reply of limits/take.lua:
// the reading, how many requests the rule does not deny, and for a log the mark.
func toldWidth(r *kind.Rule) int {
	if r.Entries {
		return r.Width + 2
	}
	return r.Width + 1
}

const (
	toldOfBar   = 3  // how many numbers of a bar there are
	unreadable  = -1 // is told if a key holds what neap never writes
	overridden  = -2 // is told if the subject has other policies
	mostNumbers = 6  // how many numbers limits/take.lua takes for each policy
)

// scripts are those that were made, by their names or shapes. A shape is the kinds of the
// policies in turn, bars (bans, the hold, and what overrides the policies) and leases.
var scripts sync.Map

// loneScript returns the script of one policy.
func loneScript(r *kind.Rule) *script.Script {
	return made("limit_"+r.Kind, func() *script.Script {
		own := script.New(lua.Lone(r.Kind).Name, lua.Lone(r.Kind).Text)
		return merged(own, &wire.Merging{
			Script: (*wire.Script)(takeText([]string{r.Kind}, false, false)), Lead: []any{"1", "1", "0", "0", strconv.Itoa(toldWidth(r)), r.Kind},
			Numbers: mostNumbers, Keys: 1, Own: 1, Told: toldWidth(r), Least: unreadable, Moves: r.Moves,
		})
	})
}

// takeScript returns the script of several policies, or of one with a ban or a lease, that is
// a shadow, or whose reply would not fit into one number.
func takeScript(set *kind.Set) *script.Script {
	kinds, barred, leases, told := make([]string, 0, len(set.Rules)), bars(set), 0, toldOfBar*bars(set)
	for _, r := range set.Rules {
		kinds, told = append(kinds, r.Kind), told+toldWidth(r)
		if r.Lease > 0 {
			leases++
		}
	}
	shape := strings.Join(kinds, " ") + strings.Repeat(" ban", barred) + strings.Repeat(" lease", leases)
	return made(shape, func() *script.Script {
		own := takeText(kinds, barred > 0, leases > 0)
		if leases > 0 { // each decision names its own estimate
			return own
		}
		return merged(own, &wire.Merging{
			Script: (*wire.Script)(own), Keys: len(set.Rules) + barred, Own: len(set.Rules), Tail: 1, Told: told, Least: overridden, Moves: set.Moves,
		})
	})
}

func takeText(kinds []string, bans, leases bool) *script.Script {
	joined := lua.Take(bans, leases, kinds...)
	return made(joined.Name, func() *script.Script { return placed(joined) })
}

// settleScripts returns the script that concludes decisions, and the same for the background.
func settleScripts(rules []*kind.Rule) (now, late *script.Script) {
	kinds := make([]string, len(rules))
	for i, r := range rules {
		kinds[i] = r.Kind
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
