package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/neap-go/neap/core/gate"
	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
)

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o600))
}

func TestLocks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		locker, err := lock.New(p.store, "orders", nil)
		must(t, err)
		neap(t, p.with("lock", "show", "orders", "param:order=17")...).wants(t, exitNot, "param:order=17 is free. orders has no record of it")
		held, err := locker.As("worker-3").Acquire(t.Context(), "param:order=17")
		must(t, err)
		defer held.Release(context.WithoutCancel(t.Context()))
		got := read[lockLine](t, exitFound, p.with("lock", "show", "orders", "param:order=17")...)
		if want := (lockLine{"orders", "param:order=17", true, "worker-3", 1, held.Fence(), got.Lease}); got != want || got.Lease < 15_000 {
			t.Errorf("got %+v, want %+v and a lease of some 30 s", got, want)
		}
		answering(t, "n\n", p.with("lock", "force", "orders", "param:order=17")...).wants(t, exitLeft, "held by worker-3, 1 hold")
		if s, err := locker.Inspect(t.Context(), "param:order=17"); err != nil || !s.Held {
			t.Errorf("got %+v, %v, want it held: nobody has said yes", s, err)
		}
		answering(t, "yes\n", p.with("lock", "force", "orders", "param:order=17")...).wants(t, exitFound, "is free")
		if s, err := locker.Inspect(t.Context(), "param:order=17"); err != nil || s.Held || s.Fence != held.Fence() {
			t.Errorf("got %+v, %v, want it free, and its fence kept", s, err)
		}
		neap(t, p.with("lock", "force", "orders", "param:order=17")...).wants(t, exitNot, "free already")
		neap(t, p.with("lock", "show", "orders", "param:order=17")...).wants(t, exitNot, fmt.Sprintf("Its last fence was %d.", held.Fence()))
	})
}

func TestGuards(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		guard, err := idempotency.New(p.store, "pay", idempotency.Reject{}, nil)
		must(t, err)
		doubt := func(key string) {
			run, err := guard.Begin(t.Context(), key, "")
			must(t, err)
			must(t, run.Claim.Conclude(t.Context(), idempotency.Unknown()))
		}
		state := func(key string) idempotency.Record {
			r, err := guard.Inspect(t.Context(), key)
			must(t, err)
			return r
		}
		neap(t, p.with("guard", "show", "pay", "m17")...).wants(t, exitNot, "Nothing is known of m17.")
		neap(t, p.with("guard", "resolve", "pay", "m17", "--done")...).wants(t, exitNot)
		neap(t, p.with("guard", "forget", "pay", "m17")...).wants(t, exitNot)
		doubt("m17")
		got := read[guardLine](t, exitFound, p.with("guard", "show", "pay", "m17")...)
		if want := state("m17"); got.State != "in doubt" || got.Attempt != 1 || got.Fence != want.Fence || got.Expires <= 0 {
			t.Errorf("got %+v, want %+v", got, want)
		}
		answering(t, "\n", p.with("guard", "resolve", "pay", "m17", "--nothing-done")...).wants(t, exitLeft, "m17 is in doubt. Note that nothing was done?")
		if r := state("m17"); r.State != idempotency.Doubtful {
			t.Errorf("got %+v, want it in doubt still", r)
		}
		answering(t, "y\n", p.with("guard", "resolve", "pay", "m17", "--nothing-done")...).wants(t, exitFound)
		if r := state("m17"); r.State != idempotency.Free {
			t.Errorf("got %+v, want it free", r)
		}
		neap(t, p.with("guard", "resolve", "pay", "m17", "--done", "-y")...).wants(t, exitLeft, "doubt")

		doubt("done")
		neap(t, p.with("guard", "resolve", "pay", "done", "--done", "-y")...).wants(t, exitFound)
		if r := state("done"); r.State != idempotency.NoResult {
			t.Errorf("got %+v, want it done without a result", r)
		}
		scope := gate.IdempotencyScope("header:x-account=alice", "POST", "/orders", "k1")
		doubt(scope)
		of := []string{"k1", "--principal", "header:X-Account=alice", "--path", "/orders"}
		neap(t, p.with(append([]string{"guard", "show", "pay"}, of...)...)...).wants(t, exitFound, "in doubt")
		got2 := answering(t, `{"id":17}`, p.with(append([]string{"guard", "resolve", "pay", "--result", "-", "--status", "201", "-y"}, of...)...)...)
		got2.wants(t, exitFound, "with a result")
		run, err := guard.Begin(t.Context(), scope, "")
		must(t, err)
		want := gate.StoredReply(gate.Reply{Status: 201, Header: []gate.Field{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(`{"id":17}`)})
		if string(run.Result) != string(want) {
			t.Errorf("got the result %q, want %q", run.Result, want)
		}
		answering(t, "no", p.with(append([]string{"guard", "forget", "pay"}, of...)...)...).wants(t, exitLeft, "is done")
		neap(t, p.with(append([]string{"guard", "forget", "pay", "-y"}, of...)...)...).wants(t, exitFound)
		if r := state(scope); r.State != idempotency.None {
			t.Errorf("got %+v, want nothing known", r)
		}

		running, err := guard.Begin(t.Context(), "running", "")
		must(t, err)
		neap(t, p.with("guard", "resolve", "pay", "running", "--done", "-y")...).wants(t, exitLeft)
		must(t, running.Claim.Conclude(t.Context(), idempotency.NothingDone()))
		for _, args := range [][]string{
			{"resolve", "pay", "m17"}, {"resolve", "pay", "m17", "--done", "--nothing-done"}, {"resolve", "pay", "m17", "--result", "-"},
			{"resolve", "pay", "m17", "--result", "/nowhere/at/all", "-y"}, {"show", "pay", "m17", "--principal", "everyone"}, {"show", "a b", "m17"},
			{"resolve", "pay", "m17", "--result", os.DevNull, "--status", "99"}, {"resolve", "pay", "m17", "--result", os.DevNull, "--status", "200", "--content-type", "a\nb"},
		} {
			neap(t, p.with(append([]string{"guard"}, args...)...)...).wants(t, exitUsage)
		}
	})
}

// TestAYesIsAboutTheQuestion: while a person thinks, another gets the lock, and the next request runs. Neither is ended.
func TestAYesIsAboutTheQuestion(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		changes := func(change func(), args ...string) {
			t.Helper()
			asked := onWrite(sync.OnceFunc(change)) // the second write is the error
			if code := run(t.Context(), p.with(args...), system{strings.NewReader("y\n"), io.Discard, asked, noEnv}); code != exitLeft {
				t.Errorf("%q: got the status %d, want %d: it is another's by now", args, code, exitLeft)
			}
		}
		locker, err := lock.New(p.store, "orders", nil)
		must(t, err)
		held, err := locker.As("worker-3").Acquire(t.Context(), "k")
		must(t, err)
		var next *lock.Lock
		changes(func() {
			must(t, held.Release(t.Context()))
			next, err = locker.As("worker-4").Acquire(t.Context(), "k")
			must(t, err)
		}, "lock", "force", "orders", "k")
		must(t, next.Release(t.Context())) // which says whether it was lost

		guard, err := idempotency.New(p.store, "pay", idempotency.Reject{}, nil)
		must(t, err)
		begin := func(key string) *idempotency.Claim {
			answer, err := guard.Begin(t.Context(), key, "")
			must(t, err)
			return answer.Claim
		}
		for _, args := range [][]string{{"guard", "forget", "pay", "forget"}, {"guard", "resolve", "pay", "resolve", "--done"}} {
			key := args[3]
			must(t, begin(key).Conclude(t.Context(), idempotency.Unknown()))
			changes(func() {
				must(t, guard.Resolve(t.Context(), key, idempotency.NothingDone()))
				must(t, begin(key).Conclude(t.Context(), idempotency.Unknown()))
			}, args...)
			if r, err := guard.Inspect(t.Context(), key); err != nil || r.State != idempotency.Doubtful || r.Attempt != 2 {
				t.Errorf("%s: got %+v, %v, want the second run in doubt still", key, r, err)
			}
		}
	})
}

func TestStock(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		items, err := stock.New(p.store, "sale", nil)
		must(t, err)
		neap(t, p.with("stock", "left", "sale", "phone")...).wants(t, exitNot)
		neap(t, p.with("stock", "buyers", "sale", "phone")...).wants(t, exitNot)
		neap(t, p.with("stock", "restock", "sale", "phone", "5", "d1", "-y")...).wants(t, exitNot)
		_, err = items.Open(t.Context(), "phone", 10, time.Now().Add(time.Hour))
		must(t, err)
		neap(t, p.with("stock", "buyers", "sale", "phone")...).wants(t, exitFound, "No buyer has any of phone.")
		_, err = items.Reserve(t.Context(), "phone", "ann", "order-17", &stock.ReserveOptions{Quantity: 2, Keep: true})
		must(t, err)
		_, err = items.Reserve(t.Context(), "phone", "bob", "order-18", &stock.ReserveOptions{Confirm: true})
		must(t, err)
		answering(t, "n", p.with("stock", "restock", "sale", "phone", "5", "d1")...).wants(t, exitLeft, "Add 5 units of phone, as delivery d1?")
		for range 2 {
			neap(t, p.with("stock", "restock", "sale", "phone", "5", "d1", "-y")...).wants(t, exitFound)
		}
		neap(t, p.with("stock", "restock", "sale", "phone", "6", "d1", "-y")...).wants(t, exitLeft)
		neap(t, p.with("stock", "restock", "sale", "phone", "0", "d2", "-y")...).wants(t, exitUsage)
		l, err := items.Left(t.Context(), "phone")
		must(t, err)
		got := read[levelLine](t, exitFound, p.with("stock", "left", "sale", "phone")...)
		if want := (levelLine{"sale", "phone", 15, 12, 2, 1, got.Lifetime}); got != want || l.Left != 12 || got.Lifetime < 3_000_000 {
			t.Errorf("got %+v, want %+v; the API has %+v", got, want, l)
		}
		buyers := read[buyersPage](t, exitFound, p.with("stock", "buyers", "sale", "phone")...)
		if len(buyers.Buyers) != 2 || !buyers.All {
			t.Fatalf("got %+v, want two buyers", buyers)
		}
		for _, b := range buyers.Buyers {
			want := map[string]buyerLine{"ann": {"ann", "order-17", 2, false, b.Lease}, "bob": {"bob", "order-18", 1, true, 0}}[b.Buyer]
			if b != want || !b.Sold && b.Lease <= 0 {
				t.Errorf("got %+v, want %+v", b, want)
			}
		}
		neap(t, p.with("stock", "buyers", "sale", "phone", "--most", "1")...).wants(t, exitFound, "There are more")
	})
}

// unharmed fails the test if what a run printed can drive a terminal.
func unharmed(t *testing.T, what string, s said) {
	t.Helper()
	for _, c := range s.out + s.errs {
		if c != '\n' && !unicode.IsPrint(c) {
			t.Errorf("%s: got %q, want nothing that drives a terminal", what, s.out+s.errs)
			return
		}
	}
}

// TestHostileTexts has every command print what would clear a screen, hide a line or end it.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	prefix := p.flags[3]
	admin := srv.Admin(t)
	evil := []string{"\x1b[2J", "a\nneap: all is well", "{a}:{b}", "a b  c", "\u202egnp.exe", "\u009b31m", "\xff\xfe", "\x00", "\U000e0001tag", "a\ttab", "*", "%1b"}
	for _, text := range evil {
		for _, args := range [][]string{
			{"peek", "api", text}, {"peek", "api", text, "--json"}, {"peek", "api", text, "b"}, {"peek", text, "a"}, {"peek", "api", "ip=" + text}, {"peek", "api", "header:" + text + "=b"},
			{"reset", "api", text}, {"ban", "api", text, "--for", "1m", "--policy", "window 5/1h ban 5/1m for 1m"}, {"peek", "api", text}, {"unban", "api", text}, {"top", text}, {"top"},
			{"lock", "show", "orders", text}, {"lock", "force", text, "a"}, {"guard", "show", "pay", text}, {"guard", "show", "pay", "k", "--principal", text, "--path", text},
			{"guard", "resolve", "pay", text, "--done"}, {"stock", "left", "sale", text}, {"stock", "restock", "sale", text, "5", text}, {"stock", "buyers", "sale", text},
			{text}, {"--" + text}, {"completion", text}, {"__complete", "--", text}, {"peek", "api", "a", "--secret-file", text}, {"doctor", "--for-user", text}, {"doctor", "--for", text},
		} {
			got := neap(t, p.with(args...)...)
			unharmed(t, fmt.Sprintf("%q", args), got)
			if got.code > exitLeft {
				t.Errorf("%q: got the status %d, want a documented one", args, got.code)
			}
		}
	}
	// Somebody has edited records.
	must(t, admin.HSet(t.Context(), prefix+":lock:orders:{x}", "fence", "7", "keep", "1000", "owner", "\x1b[2Jme", "h:1", "1").Err())
	must(t, admin.PExpire(t.Context(), prefix+":lock:orders:{x}", time.Hour).Err())
	must(t, admin.HSet(t.Context(), prefix+":stock:sale:{x}", "left", "\x1b[2J").Err())
	must(t, admin.PExpire(t.Context(), prefix+":stock:sale:{x}", time.Hour).Err())
	neap(t, p.with("stock", "buyers", "sale", "x")...).wants(t, exitLeft, "disagrees")
	for _, args := range [][]string{{"lock", "show", "orders", "x"}, {"lock", "show", "orders", "x", "--json"}, {"lock", "force", "orders", "x"}, {"stock", "left", "sale", "x"}} {
		unharmed(t, fmt.Sprintf("%q of an edited record", args), neap(t, p.with(args...)...))
	}
}

// TestSubjectsAreReadAsGatesWriteThem has people's ways to write them.
func TestSubjectsAreReadAsGatesWriteThem(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"ip=203.0.113.7": "ip=203.0.113.7", "ip=::ffff:203.0.113.7": "ip=203.0.113.7", "ip=2001:DB8::7": "ip=2001:db8::/64", "ip=2001:db8::7/64": "ip=2001:db8::/64",
		"ip=203.0.113.7/24": "ip=203.0.113.0/24", "ip=203.0.113.7/32": "ip=203.0.113.7", "ip=2001:db8::7/128": "ip=2001:db8::7", "ip=2001:db8:0:ff00::/56": "ip=2001:db8:0:ff00::/56", "header:X-Api-Key=k 1": "header:x-api-key=k 1", "header:Host=a.example": "header:host=a.example",
		"path=/users/caf%c3%a9": "path=/users/caf%C3%A9", "param:id=a%2Fb": "param:id=a/b", "route=/users/{id}": "route=/users/{id}", "user": "user", "all": "all",
		"tenant=17": "tenant=17", "key:account=a=b": "key:account=a=b", "everyone": "everyone", "query:user=ann": "query:user=ann",
		"key:a%3Db=c": "key:a%3Db=c",
	} {
		if got, err := (&whom{Subject: []string{written}}).text(); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", written, got, err, want)
		}
	}
	joined, err := gate.Subject(gate.Join(gate.ByHeader("X-Tenant"), gate.ByRoute()), gate.Values{Header: map[string]string{"X-Tenant": "a"}, Route: "/{id}"})
	must(t, err)
	if got, err := (&whom{Subject: []string{"header:x-tenant=a", "route=/{id}"}}).text(); err != nil || got != joined {
		t.Errorf("got %q, %v, want %q", got, err, joined)
	}
	for _, wrong := range []string{"203.0.113.7", "2001:db8::7", "ip=", "ip=1.2.3", "ip=1.2.3.4/33", "ip=1.2.3.4/0", "ip=::/0", "ip=::ffff:1.2.3.4/120", "ip=a.example", "header:=a", "header:a b=c", "header:x=", "param:=a", "param:id="} {
		if got, err := (&whom{Subject: []string{wrong}}).text(); status(err) != exitUsage {
			t.Errorf("%q: got %q, %v, want the command line to be wrong", wrong, got, err)
		}
		if got, err := (&whom{Subject: []string{wrong}, AsIs: true}).text(); err != nil || got != wrong {
			t.Errorf("%q as it is: got %q, %v", wrong, got, err)
		}
	}
}
