package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
)

type guardDoubt struct {
	Name string `arg:"" optional:"" help:"List only the keys of this guard."`
	Rows int    `default:"100" help:"How many keys to show."`
	Keys int    `default:"100000" help:"How many keys of each server to look at."`
}

// doubtPage is what guard doubt prints.
type doubtPage struct {
	Records []doubtLine `json:"records"`
	InDoubt int         `json:"in_doubt"`
	Gone    int         `json:"process_gone"` // pending, and the lease is over
	Foreign []whose     `json:"foreign"`      // keys with a record that a script of neap cannot read
	Missed  []missed    `json:"missed"`
	Cost    doubtCost   `json:"cost"`
}

// doubtLine is a key, and what its record and its own text tell. Whose request it is stands in no record: only a key that
// is not hashed tells it.
type doubtLine struct {
	Name    string `json:"name"`
	Key     string `json:"key"`
	Hashed  bool   `json:"hashed"`
	State   string `json:"state"`
	Attempt int64  `json:"attempt"`
	Age     int64  `json:"age_ms"` // since the last run began, by the server's clock
	Expires int64  `json:"expires_ms"`
	Fence   int64  `json:"fence"`
	scope
}

// scope is what gate.IdempotencyScope was given, or nothing.
type scope struct {
	Principal string `json:"principal"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	ClientKey string `json:"client_key"`
}

// doubtCost is what the answer cost Redis.
type doubtCost struct {
	Servers  int   `json:"servers"`
	Replicas int   `json:"replicas"` // of the servers
	Keys     int   `json:"keys_looked_at"`
	AllKeys  bool  `json:"all_keys"`
	Records  int   `json:"records_asked_about"`
	Commands int64 `json:"commands"`
	Took     int64 `json:"took_ms"`
}

func (d *guardDoubt) Run(ctx context.Context, a *app) error {
	began := time.Now()
	if d.Keys < 1 || d.Rows < 1 {
		return usagef("--keys is %d and --rows is %d: use 1 or more", d.Keys, d.Rows)
	}
	f, st, err := a.begin(ctx)
	if err != nil {
		return err
	}
	if _, err := st.Key("guard", cmp.Or(d.Name, "any"), "any"); err != nil {
		return usage(err)
	}
	servers, replicas, err := f.readers(ctx)
	if err != nil {
		return err
	}
	result := doubtPage{Records: []doubtLine{}, Foreign: []whose{}, Cost: doubtCost{Servers: len(servers), Replicas: replicas, AllKeys: true}}
	var partly error
	result.Missed, partly, err = a.readAll(ctx, servers, func(n node) error { return d.read(ctx, a, n, &result) })
	if err != nil {
		return err
	}
	result.Cost.AllKeys = result.Cost.AllKeys && partly == nil
	slices.SortFunc(result.Records, func(a, b doubtLine) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key))
	})
	result.Records = result.Records[:min(d.Rows, len(result.Records))]
	result.Cost.Commands, result.Cost.Took = a.spent.commands.Load(), time.Since(began).Milliseconds()
	err = a.show(result, result.tell)
	switch {
	case err != nil:
	case partly != nil:
		err = partly
	case len(result.Records) == 0:
		err = not
	}
	return err
}

// read asks about the records of one server.
func (d *guardDoubt) read(ctx context.Context, a *app, n node, result *doubtPage) error {
	st, err := a.open(n.rdb)
	if err != nil {
		return err
	}
	within, cancel := a.within(ctx)
	defer cancel()
	now, err := n.rdb.Time(within).Result()
	if err != nil {
		return err
	}
	guards := map[string]*idempotency.Guard{}
	known := map[whose]bool{} // SCAN may name a key twice
	var mu sync.Mutex
	looked, all, err := a.scan(ctx, n.rdb, begins(a.Prefix, "guard", d.Name), d.Keys, func(keys []string) error {
		records, err := d.recordsOf(st, keys, guards)
		if err != nil {
			return err
		}
		return someAtATime(ctx, records, func(ctx context.Context, w whose) error {
			r, err := guards[w.Name].Inspect(ctx, w.Subject)
			mu.Lock()
			defer mu.Unlock()
			result.Cost.Records++
			switch foreign := errors.Is(err, script.ErrFailed); {
			case err != nil && !foreign:
				return err
			case known[w] || !foreign && !doubtful(r):
			case foreign:
				known[w], result.Foreign = true, append(result.Foreign, w)
			default:
				known[w] = true
				result.add(w, r, now)
			}
			return nil
		})
	})
	if err != nil {
		return ofScan(err)
	}
	result.Cost.Keys, result.Cost.AllKeys = result.Cost.Keys+looked, result.Cost.AllKeys && all
	return nil
}

// recordsOf are the guards' records among the keys. It makes the guards that are not there yet.
func (d *guardDoubt) recordsOf(st *store.Store, keys []string, guards map[string]*idempotency.Guard) (records []whose, err error) {
	for _, key := range keys {
		parts, ok := st.ParseKey(key)
		if !ok || parts.Kind != "guard" || parts.Tail != "" || d.Name != "" && parts.Name != d.Name {
			continue
		}
		if guards[parts.Name] == nil {
			if guards[parts.Name], err = idempotency.New(st, parts.Name, idempotency.Retry{}, nil); err != nil {
				return nil, err
			}
		}
		records = append(records, whose{parts.Name, parts.Subject})
	}
	return records, nil
}

// doubtful says whether Resolve could say how the run ended.
func doubtful(r idempotency.Record) bool {
	return r.State == idempotency.Doubtful || r.State == idempotency.Pending && r.Lease == 0
}

func (d *doubtPage) add(w whose, r idempotency.Record, now time.Time) {
	line := doubtLine{
		Name: w.Name, Key: w.Subject, Hashed: strings.HasPrefix(w.Subject, "#"), State: string(r.State),
		Attempt: r.Attempt, Expires: r.Expires.Milliseconds(), Fence: r.Fence,
	}
	// A fence is the microsecond in which the run began, unless the clock was set back.
	line.Age = max(0, now.Sub(time.UnixMicro(r.Fence)).Milliseconds())
	if !line.Hashed {
		line.scope = scopeOf(w.Subject)
	}
	if r.State == idempotency.Doubtful {
		d.InDoubt++
	} else {
		d.Gone++
	}
	d.Records = append(d.Records, line)
}

// scopeOf reads what gate.IdempotencyScope has made. A key that it has not made is nothing, or looks as if it had.
func scopeOf(key string) scope {
	var parts [3]string
	for i := range parts {
		length, rest, ok := strings.Cut(key, ":")
		n, err := strconv.Atoi(length)
		if !ok || err != nil || strconv.Itoa(n) != length || n < 1 || n > len(rest) {
			return scope{}
		}
		parts[i], key = rest[:n], rest[n:]
	}
	if strings.Trim(parts[1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" || parts[2][0] != '/' {
		return scope{}
	}
	return scope{parts[0], parts[1], parts[2], key}
}

func (d *doubtPage) tell(w *page) {
	hashed := false
	if len(d.Records) > 0 {
		w.row("GUARD", "KEY", "STATE", "ATTEMPT", "AGE", "FORGOTTEN IN", "PRINCIPAL", "REQUEST")
	}
	for _, l := range d.Records {
		hashed = hashed || l.Hashed
		state := (&guardLine{State: l.State}).says()
		w.row(l.Name, l.Key, state, l.Attempt, duration(l.Age), duration(l.Expires), l.Principal, strings.TrimSpace(l.Method+" "+l.Path))
	}
	w.linef("%s in doubt, and %s pending whose process is gone.", count(d.InDoubt, "record"), thousands(int64(d.Gone)))
	if left := d.InDoubt + d.Gone - len(d.Records); left > 0 {
		w.linef("%s not shown: see --rows.", count(left, "more record"))
	}
	if hashed {
		w.linef("A key that begins with # is a hash: of a long or unusual one, or of any where the service has a SubjectSecret. Whose request it is cannot be told from it. Commands take it as it is.")
	}
	if n := len(d.Foreign); n > 0 {
		w.linef("%s left out, with a record that neap cannot read, such as %s under %s: neap guard forget deletes it.", count(n, "key"), d.Foreign[0].Subject, d.Foreign[0].Name)
	}
	tellMissed(w, "Records", d.Missed)
	looked := sightOf(d.Cost.Keys, d.Cost.AllKeys, d.Missed)
	w.linef("Cost: %s; %s to %s (%s), %v.", looked, count(int(d.Cost.Commands), "command"), count(d.Cost.Servers, "server"), count(d.Cost.Replicas, "replica"), duration(d.Cost.Took))
}
