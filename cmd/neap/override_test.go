package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// TestLimits gives a subject another limit, as support does, and asks a service that has Options.Overrides.
func TestLimits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		l, err := limit.New(p.store, "api", []limit.Policy{
			limit.KeepOnChange(limit.FixedWindow{Name: "hourly", Limit: 3, Window: time.Hour}),
			limit.KeepOnChange(limit.TokenBucket{Name: "burst", Rate: 10, Per: time.Hour}),
		}, &limit.Options{Fail: store.FailClosed, Overrides: true})
		must(t, err)
		left := func(want int64) {
			t.Helper()
			d, err := l.Peek(t.Context(), "user=42")
			must(t, err)
			if d.Remaining != want {
				t.Errorf("got %d left, want %d", d.Remaining, want)
			}
		}
		take(t, l, "user=42", 1)
		left(2)
		neap(t, p.with("limit", "get", "api", "user=42")...).wants(t, exitNot, "user=42 was given no other policies of api.")
		neap(t, p.with("limit", "unset", "api", "user=42")...).wants(t, exitNot, "user=42 was given no other policies of api.")
		neap(t, p.with("limit", "list")...).wants(t, exitNot, "No subject was given other policies; all keys looked at.")
		neap(t, p.with("limit", "set", "api", "user=42", "--policy", "window 100/1h", "--for", "24h")...).wants(t, exitFound, "user=42 has window 100/1h for 24h.")
		left(9)
		set := read[overrideChange](t, exitFound, p.with("limit", "set", "api", "user=42", "--policy", "window 8/1h name hourly kept", "--policy", "bucket 50/1h", "--for", "24h")...)
		if len(set.Policies) != 2 || set.Left != 86_400_000 || !slices.Equal(set.Replaced, []string{"window 100/1h"}) {
			t.Errorf("got %+v, want that it replaces window 100/1h", set)
		}
		left(7)
		got := read[overrideLine](t, exitFound, p.with("limit", "get", "api", "user=42")...)
		if len(got.Policies) != 2 || got.Policies[0] != "window 8/1h name hourly kept" || got.Policies[1] != "bucket 50/1h" || got.Left < 86_000_000 || got.Left > 86_400_000 {
			t.Errorf("got %+v, want both policies for a day", got)
		}
		neap(t, p.with("limit", "set", "web", "ip=203.0.113.7", "--policy", "window 1/1h", "--for", "1m")...).wants(t, exitFound)
		all := read[overridePage](t, exitFound, p.with("limit", "list")...)
		if len(all.Subjects) != 2 || all.Subjects[0].Subject != "user=42" || all.Subjects[1].Name != "web" || all.Subjects[1].Left > 60_000 || !all.AllKeys {
			t.Errorf("got %+v, want both subjects", all)
		}
		neap(t, p.with("limit", "list", "web")...).wants(t, exitFound, "ip=203.0.113.7")
		neap(t, p.with("limit", "unset", "api", "user=42")...).wants(t, exitFound, "user=42 has the limiter's own policies again.")
		left(2)
		if set := neap(t, p.with("limit", "set", "api", "user=42", "--policy", "window 8/1h", "--for", "24h")...); set.out != "user=42 has window 8/1h for 24h.\n" {
			t.Errorf("got %q, want nothing replaced", set.out)
		}
		neap(t, p.with("limit", "set", "api", "user=42", "--policy", "bucket 9/1h", "--for", "24h")...).wants(t, exitFound, "It replaces what user=42 had: window 8/1h.")
		for text, args := range map[string][]string{
			"at least a millisecond": {"--policy", "window 1/1h", "--for", "0s"},
			"is no kind of policy":   {"--policy", "leaky 1/1h", "--for", "1h"},
			"leave them out":         {"--policy", "window 1/1h shadow", "--for", "1h"},
			"may be meant for":       {"--policy", "window 1/1h", "--policy", "window 2/1h", "--for", "1h"},
		} {
			neap(t, p.with(append([]string{"limit", "set", "api", "user=42"}, args...)...)...).wants(t, exitUsage, text)
		}
	})
}

// TestPeekAndTopHeedAnOverride: they say of a subject what a service with Options.Overrides does.
func TestPeekAndTopHeedAnOverride(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		hourly := limit.KeepOnChange(limit.FixedWindow{Name: "hourly", Limit: 3, Window: time.Hour})
		take(t, p.limiter(t, hourly), "user=42", 3)
		given := []string{"--policy", "window 3/1h name hourly kept"}
		denied := read[tally](t, exitFound, p.with(append([]string{"peek", "api", "user=42"}, given...)...)...)
		if denied.Allowed || len(denied.Notes) > 0 {
			t.Errorf("before: got %+v, want it denied and no note", denied)
		}
		neap(t, p.with("limit", "set", "api", "user=42", "--policy", "window 100/1h", "--policy", "bucket 50/1h", "--for", "24h")...).wants(t, exitFound)
		got := read[tally](t, exitFound, p.with(append([]string{"peek", "api", "user=42"}, given...)...)...)
		if one := got.Policies[0]; !got.Allowed || one.Remaining != 97 || one.Limit != 100 || len(got.Notes) != 1 {
			t.Errorf("peek: got %+v, want 97 of 100 left, and a note", got)
		}
		neap(t, p.with(append([]string{"peek", "api", "user=42"}, given...)...)...).wants(t, exitFound, "user=42 may go on.", "user=42 has window 100/1h, bucket 50/1h for ", " more, if the limiter has Options.Overrides.")
		top := read[topPage](t, exitFound, p.with(append([]string{"top", "api"}, given...)...)...)
		if one := top.Subjects[0]; top.Denied > 0 || !one.Allowed || one.Remaining != 97 || one.Limit != 100 {
			t.Errorf("top: got %+v, want 97 of 100 left", top)
		}
		// A service cannot have Options.Overrides with a policy that is not kept.
		mixed := read[tally](t, exitFound, p.with(append([]string{"peek", "api", "user=42", "--policy", "window 9/2h"}, given...)...)...)
		if mixed.Allowed || len(mixed.Notes) > 0 {
			t.Errorf("with a policy that is not kept: got %+v, want it denied and no note", mixed)
		}
	})
}

// TestOverridesThatNoneCanRead: of another kind of key, and of a version that reads more policies than this one.
func TestOverridesThatNoneCanRead(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	key := func(subject string) string { return p.flags[3] + ":limit:api:{" + subject + "}:override" }
	must(t, srv.Admin(t).LPush(t.Context(), key("list"), "window 10/1h").Err())
	must(t, srv.Admin(t).Expire(t.Context(), key("list"), time.Hour).Err())
	must(t, srv.Admin(t).Set(t.Context(), key("forever"), "window 10/1h", 0).Err())
	neap(t, p.with("limit", "list")...).wants(t, exitNot, "No subject was given other policies")
	must(t, srv.Admin(t).Del(t.Context(), key("forever")).Err())
	must(t, srv.Admin(t).Set(t.Context(), key("later"), "window 10/1h; leaky 10/1s", time.Hour).Err())
	if all := read[overridePage](t, exitFound, p.with("limit", "list")...); len(all.Subjects) != 1 || all.Subjects[0].Subject != "later" {
		t.Errorf("got %+v, want the subject beside the list", all)
	}
	neap(t, p.with("limit", "get", "api", "list")...).wants(t, exitNot)
	neap(t, p.with("limit", "get", "api", "later")...).wants(t, exitRefused, "later was given policies that this version of neap cannot read", `"leaky 10/1s"`, "neap limit list")
	neap(t, p.with("peek", "api", "later", "--policy", "window 3/1h name hourly kept")...).wants(t, exitNot, "later may go on.", "cannot read")
	got := read[overrideChange](t, exitFound, p.with("limit", "set", "api", "later", "--policy", "window 8/1h", "--for", "1h")...)
	if len(got.Replaced) > 0 {
		t.Errorf("got %+v, want nothing replaced that can be read", got)
	}
	neap(t, p.with("limit", "get", "api", "later")...).wants(t, exitFound, "later has window 8/1h for ")
}

// TestTheHintsOfALibraryAreForServices: the service has one more policy than the command is told of.
func TestTheHintsOfALibraryAreForServices(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil)
	neap(t, p.with("limit", "set", "api", "user=42", "--policy", "window 100/1h", "--policy", "bucket 50/1h", "--for", "24h")...).wants(t, exitFound)
	cmd := exec.CommandContext(t.Context(), os.Args[0], p.with("peek", "api", "user=42", "--policy", "window 3/1h name hourly kept")...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	out, err := cmd.CombinedOutput()
	said{cmd.ProcessState.ExitCode(), string(out), ""}.wants(t, exitNot, "100   100")
	if strings.Contains(string(out), "WARN") {
		t.Errorf("got %s, %v, want nothing logged", out, err)
	}
}
