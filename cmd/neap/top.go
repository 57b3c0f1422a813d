package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

type top struct {
	Name   string   `arg:"" optional:"" help:"Show only this limiter."`
	Policy []string `sep:"none" placeholder:"POLICY" help:"A policy of the limiter NAME, as for peek. You need it for policies of KeepOnChange, whose keys do not have the numbers."`
	Rows   int      `default:"20" help:"How many subjects to show."`
	Keys   int      `default:"10000" help:"How many keys of each server to look at."`
}

// topPage is what top prints.
type topPage struct {
	Subjects []topLine `json:"subjects"`
	Denied   int       `json:"denied"`  // of those asked about
	Unread   int       `json:"unread"`  // subjects of policies whose keys do not have the numbers
	Foreign  []whose   `json:"foreign"` // subjects with a record that a script of neap cannot read
	Missed   []missed  `json:"missed"`
	Cost     topCost   `json:"cost"`

	given bool // the policies, by --policy
}

// topLine is a subject, by the policy that denies it longest or leaves it least.
type topLine struct {
	Name       string `json:"name"`
	Subject    string `json:"subject"`
	Hashed     bool   `json:"hashed"`
	Policy     string `json:"policy"`
	Allowed    bool   `json:"allowed"`
	Banned     bool   `json:"banned"`
	OnHold     bool   `json:"on_hold"`
	Remaining  int64  `json:"remaining"`
	Limit      int64  `json:"limit"`
	RetryAfter int64  `json:"retry_after_ms"`
}

// whose is a subject of a limiter.
type whose struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
}

// topCost is what the answer cost Redis.
type topCost struct {
	Servers  int   `json:"servers"`
	Replicas int   `json:"replicas"` // of the servers
	Keys     int   `json:"keys_looked_at"`
	AllKeys  bool  `json:"all_keys"`
	Subjects int   `json:"subjects_asked_about"`
	Commands int64 `json:"commands"`
	Took     int64 `json:"took_ms"`
}

func (t *top) Run(ctx context.Context, a *app) error {
	began := time.Now()
	switch {
	case t.Keys < 1 || t.Rows < 1:
		return usagef("--keys is %d and --rows is %d: use 1 or more", t.Keys, t.Rows)
	case len(t.Policy) > 0 && t.Name == "":
		return usagef("--policy is one of a limiter: name the limiter")
	}
	var given []policy
	for _, text := range t.Policy {
		p, err := readPolicy(text)
		if err != nil {
			return err
		}
		given = append(given, p)
	}
	f, st, err := a.begin(ctx)
	if err != nil {
		return err
	}
	if _, err := st.Key("limit", cmp.Or(t.Name, "any"), "any"); err != nil {
		return usage(err)
	}
	servers, replicas, err := f.readers(ctx)
	if err != nil {
		return err
	}
	result := topPage{Subjects: []topLine{}, Foreign: []whose{}, given: len(given) > 0, Cost: topCost{Servers: len(servers), Replicas: replicas, AllKeys: true}}
	var partly error
	result.Missed, partly, err = a.readAll(ctx, servers, func(n node) error { return t.read(ctx, a, n, given, &result) })
	if err != nil {
		return err
	}
	result.Cost.AllKeys = result.Cost.AllKeys && partly == nil
	slices.SortFunc(result.Subjects, nearest)
	result.Subjects = result.Subjects[:min(t.Rows, len(result.Subjects))]
	result.Cost.Commands, result.Cost.Took = a.spent.commands.Load(), time.Since(began).Milliseconds()
	err = a.show(result, result.tell)
	switch {
	case err != nil:
	case partly != nil:
		err = partly
	case len(result.Subjects) == 0:
		err = not
	}
	return err
}

// nearest sorts first the subjects that are denied longest, then those with the smallest part of their limit left.
func nearest(a, b topLine) int {
	part := func(l topLine) float64 { return float64(l.Remaining) / float64(l.Limit) }
	return cmp.Or(
		cmp.Compare(b.RetryAfter, a.RetryAfter),
		cmp.Compare(part(a), part(b)),
		strings.Compare(a.Name, b.Name),
		strings.Compare(a.Subject, b.Subject),
	)
}

// seen is a subject under a name, by its keys.
type seen struct {
	name, subject string
	ends          []string
}

// read asks about the subjects of one server.
func (t *top) read(ctx context.Context, a *app, n node, given []policy, result *topPage) error {
	st, err := a.open(n.rdb)
	if err != nil {
		return err
	}
	subjects := map[[2]string]*seen{}
	looked, all, err := a.scan(ctx, n.rdb, begins(a.Prefix, "limit", t.Name), t.Keys, func(keys []string) error {
		for _, key := range keys {
			parts, ok := st.ParseKey(key)
			if !ok || parts.Kind != "limit" || t.Name != "" && parts.Name != t.Name {
				continue
			}
			id := [2]string{parts.Name, parts.Subject}
			if subjects[id] == nil {
				subjects[id] = &seen{name: parts.Name, subject: parts.Subject}
			}
			subjects[id].ends = append(subjects[id].ends, parts.Tail)
		}
		return nil
	})
	if err != nil {
		return ofScan(err)
	}
	result.Cost.Keys, result.Cost.AllKeys = result.Cost.Keys+looked, result.Cost.AllKeys && all
	return ask(ctx, &questions{app: a, store: st, given: given, known: map[string]*counted{}, asked: map[string][]asked{}},
		slices.Collect(maps.Values(subjects)), result)
}

// questions make the limiters of subjects, each once.
type questions struct {
	app   *app
	store *store.Store
	given []policy

	mu    sync.Mutex
	known map[string]*counted
	asked map[string][]asked
}

// of is what to ask about a subject.
func (q *questions) of(s *seen) (*counted, []asked, error) {
	slices.Sort(s.ends)
	ends := s.name + "\x00" + strings.Join(slices.Compact(s.ends), "\x00")
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known[ends] == nil {
		c := &counted{app: q.app, store: q.store, name: s.name}
		if c.own, c.unread = policiesOf(s.ends); len(q.given) > 0 {
			c.own, c.unread = q.given, nil
		}
		all, err := c.limiters(c.own)
		if err != nil {
			return nil, nil, err
		}
		q.known[ends], q.asked[ends] = c, all
	}
	return q.known[ends], q.asked[ends], nil
}

// ask asks about the subjects, and ends with the first error that is not about one subject's record alone.
func ask(ctx context.Context, q *questions, subjects []*seen, result *topPage) error {
	var mu sync.Mutex
	return someAtATime(ctx, subjects, func(ctx context.Context, s *seen) error {
		c, limiters, err := q.of(s)
		var line topLine
		if err == nil && len(limiters) > 0 {
			line, err = nearestOf(ctx, s, limiters)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, script.ErrFailed):
			result.Foreign = append(result.Foreign, whose{s.name, s.subject})
		case err != nil:
			return err
		case len(limiters) > 0:
			result.add(line)
		case len(c.unread) > 0:
			result.Unread++
		}
		return nil
	})
}

func (t *topPage) add(line topLine) {
	t.Cost.Subjects++
	if !line.Allowed {
		t.Denied++
	}
	t.Subjects = append(t.Subjects, line)
}

// nearestOf is the line of a subject, by the policy that binds.
func nearestOf(ctx context.Context, s *seen, limiters []asked) (line topLine, err error) {
	for i, l := range limiters {
		d, err := l.Peek(ctx, s.subject)
		if err != nil {
			return topLine{}, err
		}
		one := topLine{s.name, s.subject, strings.HasPrefix(s.subject, "#"), d.Policy, d.Allowed, d.Banned(), d.OnHold(), d.Remaining, d.Limit, d.RetryAfter.Milliseconds()}
		if i == 0 || nearest(one, line) < 0 {
			line = one
		}
	}
	return line, nil
}

func (t *topPage) tell(w *page) {
	hashed := false
	if len(t.Subjects) > 0 {
		w.row("LIMITER", "SUBJECT", "POLICY", "LEFT", "OF", "DENIED FOR", "")
	}
	for _, l := range t.Subjects {
		mark := ""
		switch {
		case l.Banned:
			mark = "banned"
		case l.OnHold:
			mark = "on hold"
		}
		hashed = hashed || l.Hashed
		w.row(l.Name, l.Subject, l.Policy, l.Remaining, l.Limit, duration(l.RetryAfter), mark)
	}
	w.linef("%s asked about, %s of them denied.", count(t.Cost.Subjects, "subject"), thousands(int64(t.Denied)))
	if t.Denied > 0 && !t.given {
		w.linef("%s", shadows)
	}
	if hashed {
		w.linef("A subject that begins with # is a hash: of a long or unusual one, or of any where the service has a SubjectSecret. Commands take it as it is.")
	}
	if t.Unread > 0 {
		w.linef("%s left out, whose keys do not have the numbers (KeepOnChange): name the limiter and give --policy.", count(t.Unread, "subject"))
	}
	if n := len(t.Foreign); n > 0 {
		w.linef("%s left out, with a record that neap cannot read, such as that of %s under %s: neap reset forgets it.", count(n, "subject"), t.Foreign[0].Subject, t.Foreign[0].Name)
	}
	tellMissed(w, "Subjects", t.Missed)
	looked := sightOf(t.Cost.Keys, t.Cost.AllKeys, t.Missed)
	w.linef("Cost: %s; %s to %s (%s), %v.", looked, count(int(t.Cost.Commands), "command"), count(t.Cost.Servers, "server"), count(t.Cost.Replicas, "replica"), duration(t.Cost.Took))
}
