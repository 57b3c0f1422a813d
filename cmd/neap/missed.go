package main

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// missed is a server that was not read, or not to the end, so that something is missing.
type missed struct {
	Server string `json:"server"`
	Why    string `json:"why"`
}

// readAll reads from each server, and returns those that it missed. partly is how a command ends that has something to
// show all the same, and err how one ends that has nothing.
func (a *app) readAll(ctx context.Context, servers []node, read func(n node) error) (all []missed, partly, err error) {
	all = []missed{} // and not null
	var faults []error
	for _, n := range servers {
		if err := read(n); err != nil {
			faults, all = append(faults, err), append(all, missed{n.addr, a.message(err)})
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case len(faults) == 0:
		return all, nil, nil
	case len(faults) == len(servers):
		return nil, nil, allMissed(faults, all)
	}
	return all, &failure{worst(faults), errSilent}, nil
}

// allMissed is the error if no server was read. It names the servers if they differ.
func allMissed(faults []error, all []missed) error {
	texts := make([]string, 0, len(all))
	for _, m := range all {
		texts = append(texts, m.Server+": "+m.Why)
	}
	if !slices.ContainsFunc(all, func(m missed) bool { return m.Why != all[0].Why }) {
		return faults[0]
	}
	return &failure{worst(faults), errors.New(strings.Join(texts, "; "))}
}

// worst is the exit status of several errors: that of a server that does not answer, if there is one.
func worst(faults []error) int {
	for _, err := range faults {
		if code := status(err); code == exitAway {
			return code
		}
	}
	return status(faults[0])
}

// tellMissed names the servers that were missed, and what is missing of each.
func tellMissed(w *page, what string, all []missed) {
	for _, m := range all {
		w.linef("%s of %s are missing: %s.", what, m.Server, m.Why)
	}
}

// sightOf is [sight] of keys on servers, some of them missed: more --keys would not help.
func sightOf(keys int, all bool, some []missed) string {
	if len(some) > 0 {
		return "about " + count(keys, "key") + " looked at"
	}
	return sight(keys, all)
}
