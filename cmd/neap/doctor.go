package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/neap-go/neap/core/store"
)

type doctor struct {
	Redis   string   `arg:"" optional:"" name:"url" help:"The Redis, as --url."`
	ForUser string   `name:"for-user" placeholder:"NAME" help:"The user whose rights doctor looks at, if it is not the one that doctor logs in as. Then doctor's own user needs the right acl|dryrun, which Redis has from version 7 on."`
	For     []string `enum:"limit,inflight,lock,guard,stock" default:"limit,inflight,lock,guard,stock" help:"The primitives that the service uses: it does not need the rights of the others. One or more of ${enum}."`
	Keys    int      `default:"100000" help:"How many keys of each server to look at, for those without a TTL and for memory."`
}

// finding is what one check has found.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
}

// mark is the word before a finding. A finding that breaks nothing and has a remedy is a note.
func (f finding) mark() string {
	switch {
	case !f.OK:
		return "BROKEN"
	case f.Remedy != "":
		return "note"
	}
	return "ok"
}

// exam is what the checks look at.
type exam struct {
	*app
	doctor

	fleet *fleet
	store *store.Store
	nodes []node
	infos []map[string]string // of the nodes
	blind []error             // of the nodes, why there is no info
	away  []error             // of the nodes, nil where one answers
	walks []*walk             // over the keys of the nodes, once a check has asked
}

func (d *doctor) Run(ctx context.Context, a *app) error {
	if d.Redis != "" {
		a.URL = d.Redis
	}
	if d.Keys < 1 {
		return usagef("--keys is %d: use 1 or more", d.Keys)
	}
	f, st, err := a.begin(ctx)
	if err != nil {
		return err
	}
	x := &exam{app: a, doctor: *d, fleet: f, store: st}
	if x.nodes, err = f.masters(ctx); errors.Is(err, errNoSlots) {
		return d.tell(a, []finding{{"cluster", false, "a cluster that serves no slots", masterDown}})
	} else if err != nil {
		return err
	}
	if err := x.meet(ctx); err != nil {
		return err
	}
	findings := make([]finding, 0, len(checks))
	for _, c := range checks {
		findings = append(findings, x.run(ctx, c))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.tell(a, findings)
}

// meet asks each server for what all checks need. It returns an error if a server refuses the login, or if none answers.
func (x *exam) meet(ctx context.Context) error {
	for _, n := range x.nodes {
		within, cancel := x.within(ctx)
		err := n.rdb.Time(within).Err()
		cancel()
		if isLogin(err) {
			return unreachable(n.addr, err)
		}
		var info map[string]string
		var blind error
		if isReply(err) {
			err = nil // any answer is one
		}
		if err == nil {
			info, blind = infoOf(ctx, x.app, n.rdb)
		}
		if info["redis_mode"] == "sentinel" {
			return usagef("%s is a sentinel: append ?master_name=NAME to the URL, and doctor looks at the master", n.addr)
		}
		x.infos, x.blind, x.away = append(x.infos, info), append(x.blind, blind), append(x.away, err)
	}
	if !slices.Contains(x.away, nil) {
		return unreachable(x.nodes[0].addr, x.away[0])
	}
	return nil
}

// tell prints the findings, and returns not if one breaks a promise.
func (*doctor) tell(a *app, findings []finding) error {
	broken := 0
	for _, f := range findings {
		if !f.OK {
			broken++
		}
	}
	err := a.show(map[string]any{"findings": findings}, func(w *page) {
		for _, f := range findings {
			w.row(f.mark(), f.Check, f.Detail)
			if f.Remedy != "" {
				w.row("", "", "-> "+f.Remedy)
			}
		}
		w.linef("%s: %s broken.", count(len(findings), "check"), count(broken, "promise"))
	})
	if err == nil && broken > 0 {
		err = not
	}
	return err
}

// verdict is what a check says of one server.
type verdict struct {
	broken         bool
	detail, remedy string
	away           error // why there was no reply; nil if there was one
}

// check looks at one server.
type check struct {
	name string
	look func(ctx context.Context, x *exam, n node, info map[string]string) verdict
	info bool // that it reads INFO
}

// failed is the verdict on a command that a check needs and that did not work.
func (x *exam) failed(ctx context.Context, n node, command string, err error) verdict {
	switch {
	case !isReply(err):
		return unanswered(command, err)
	case lackIn(err.Error()) != nothing:
		return x.unlooked(ctx, n, "this user may not ask "+command)
	}
	return verdict{detail: "not looked at: " + command + ": " + err.Error(), remedy: whenRefused(err)}
}

// unlooked is the verdict if doctor's user may not look.
func (x *exam) unlooked(ctx context.Context, n node, why string) verdict {
	user := x.ForUser
	if user == "" {
		var err error
		if user, err = x.whoami(ctx, n); err != nil {
			return unanswered("ACL WHOAMI", err)
		}
	}
	return verdict{
		detail: "not looked at: " + why,
		remedy: "run doctor as an operator (docs/command.md, An operator's user) with --for-user " + user,
	}
}

// run is what a check says of all servers.
func (x *exam) run(ctx context.Context, c check) finding {
	all := make([]verdict, len(x.nodes))
	for i, n := range x.nodes {
		if err := x.away[i]; err != nil {
			all[i] = verdict{detail: "not looked at: the server does not answer", remedy: "run doctor again when it does"}
			if c.name == "cluster" && x.isCluster() {
				all[i] = verdict{broken: true, detail: "does not answer: " + err.Error(), remedy: masterDown}
			}
			continue
		}
		if err := x.blind[i]; c.info && err != nil {
			all[i] = x.failed(ctx, n, "INFO", err)
		} else {
			all[i] = c.look(ctx, x, n, x.infos[i])
		}
		x.away[i] = all[i].away // what comes next would wait for it, too
	}
	found := finding{Check: c.name, OK: !slices.ContainsFunc(all, func(v verdict) bool { return v.broken })}
	var details, remedies []string
	for i, v := range all {
		detail := v.detail
		if slices.ContainsFunc(all, func(other verdict) bool { return other.detail != detail }) {
			detail = x.nodes[i].addr + ": " + detail
		}
		if !slices.Contains(details, detail) {
			details = append(details, detail)
		}
		if v.broken == !found.OK && v.remedy != "" && !slices.Contains(remedies, v.remedy) {
			remedies = append(remedies, v.remedy)
		}
	}
	// A remedy has no text of an error, and a short password would spoil it.
	found.Detail, found.Remedy = x.hide(strings.Join(details, "; ")), strings.Join(remedies, "; ")
	return found
}
