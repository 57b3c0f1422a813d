package main

import (
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// TestNothingIsReached has URLs with which a client cannot connect, although a server replies. What it replies is no
// answer to a command, so each command says what is wrong with the URL, and doctor finds nothing about the server.
func TestNothingIsReached(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	clustered := redistest.NewStandalone(t, "--cluster-enabled", "yes")
	sentinel := redistest.NewSentinel(t)
	place, query, _ := strings.Cut(sentinel.AdminURL(), "?")
	named := "master_name="
	at := strings.Index(query, named) + len(named)
	known, _, _ := strings.Cut(query[at:], "&")
	unselecting := redistest.NewUser(t, redistest.Rules+" -select", srv)
	user := "redis://" + unselecting + ":" + redistest.Password + "@" + srv.Addr()
	for name, c := range map[string]struct {
		url    string
		code   int
		remedy string
	}{
		"no such database":      {srv.AdminURL() + "/99", exitRefused, "change the number of the database"},
		"a cluster's database":  {clustered.AdminURL() + "/1", exitRefused, "a cluster has only 0"},
		"no right to SELECT":    {user + "/1", exitRefused, "+select"},
		"a wrong password":      {"redis://" + redistest.User + ":wrong@" + srv.Addr(), exitRefused, "check the user and the password"},
		"an unknown master":     {place + "?" + strings.Replace(query, known, "other", 1), exitAway, "check master_name"},
		"a sentinel's database": {sentinel.AdminURL() + "&db=99", exitRefused, "change the number of the database"},
		"a Redis as a sentinel": {srv.AdminURL() + "?master_name=m", exitRefused, "leave out master_name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{{"doctor"}, {"top"}, {"lock", "show", "orders", "17"}} {
				got := neap(t, append(args, "--url", c.url)...)
				got.wants(t, c.code, c.remedy)
				if strings.Contains(got.errs, "wrong") {
					t.Errorf("%q: got %q, want no password", args, got.errs)
				}
			}
		})
	}
	neap(t, "top", "--url", "redis://127.0.0.1:1?addr=127.0.0.1:2").wants(t, exitAway, "127.0.0.1:1, 127.0.0.1:2: ")
	neap(t, "top", "--url", srv.AdminURL()+"?addr="+srv.Addr()).wants(t, exitRefused, "leave out addr")
	examined(t, user)
	neap(t, "doctor", "redis://"+strings.TrimPrefix(place[strings.LastIndex(place, "/")+1:], "@")).wants(t, exitUsage, "?master_name=NAME")
}

// TestDoctorWhileRedisStops loses the replies to one command. Doctor does not call that a missing right, and does not wait
// for what comes next.
func TestDoctorWhileRedisStops(t *testing.T) {
	t.Parallel()
	for command, c := range map[string]struct{ check, user string }{
		"eval": {check: "eval"}, "set": {check: "write"}, "info": {check: "maxmemory"}, "config": {check: "persistence"},
		"acl": {check: "acl"}, "acl of another user": {"eval", redistest.User}, "scan": {check: "ttl"}, "pttl": {check: "ttl"},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			srv := redistest.NewStandalone(t)
			must(t, srv.Admin(t).Set(t.Context(), "neap:lock:orders:{17}", "1", time.Hour).Err())
			proxy := srv.Proxy(t)
			conn, err := proxy.Dial(t.Context(), "tcp", srv.Addr())
			if err != nil {
				t.Fatal(err)
			}
			front := conn.RemoteAddr().String()
			must(t, conn.Close())
			command, _, _ := strings.Cut(command, " ")
			proxy.Lose(redistest.Silence, 1000, command)
			got := neap(t, "doctor", "--json", "--timeout", "10s", "--for-user", c.user, strings.Replace(srv.AdminURL(), srv.Addr(), front, 1))
			if proxy.Lost() != 1 || got.code != exitNot {
				t.Errorf("got %d calls that waited and the status %d, want 1 and %d", proxy.Lost(), got.code, exitNot)
			}
			all := decode[report](t, got.out)
			if f := all.of(c.check); f.OK || !strings.Contains(f.Remedy, "see why Redis stops answering") {
				t.Errorf("got %+v, want a remedy for a Redis that stops", f)
			}
			if f := all.of("memory"); !f.OK || !strings.Contains(f.Detail, "does not answer") || !strings.Contains(f.Remedy, "again") {
				t.Errorf("got %+v, want it to say that the server does not answer", f)
			}
			for _, f := range all.Findings {
				if !f.OK && f.Check != c.check && f.Check != "latency" {
					t.Errorf("got %+v, want no other broken promise", f)
				}
			}
		})
	}
}

// TestDoctorWhileAScriptRuns has a Redis that refuses most commands for as long as a script runs.
func TestDoctorWhileAScriptRuns(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--busy-reply-threshold", "1")
	admin := srv.Admin(t)
	done := make(chan error, 1)
	go func() { done <- srv.Unhurried(t).Eval(t.Context(), "while true do end", nil).Err() }()
	redistest.Await(t, 30*time.Second, "the script to run", func() bool {
		err := admin.Get(t.Context(), "k").Err()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	got := neap(t, "doctor", "--json", srv.AdminURL())
	must(t, admin.ScriptKill(t.Context()).Err())
	<-done
	all := decode[report](t, got.out)
	for _, check := range []string{"eval", "write", "maxmemory", "acl", "ttl", "clock"} {
		if f := all.of(check); !strings.Contains(f.Detail, "BUSY") || !strings.Contains(f.Remedy, "SCRIPT KILL") {
			t.Errorf("got %+v, want it to name BUSY, and SCRIPT KILL", f)
		}
	}
	if got.code != exitNot {
		t.Errorf("got the status %d, want %d: no script can run", got.code, exitNot)
	}
}
