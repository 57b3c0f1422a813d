package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/neap-go/neap/internal/redistest"
)

// TestDoctorKnowsEveryRight takes each right of the documented line away in turn, and asks doctor by ACL DRYRUN and, as
// the user itself, by trying.
func TestDoctorKnowsEveryRight(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	slow := map[string]bool{"eval": true, "script|load": true, "ping": true, "subscribe": true, "unsubscribe": true, "publish": true}
	for word := range strings.FieldsSeq(redistest.Rules) {
		right, is := strings.CutPrefix(word, "+")
		if !is || slices.ContainsFunc(needs(true), func(n need) bool { return n.right == right }) &&
			!slices.ContainsFunc(needs(false), func(n need) bool { return n.right == right }) {
			continue // of clusters
		}
		user := redistest.NewUser(t, redistest.Without(t, word), srv)
		for way, args := range map[string][]string{
			"asking": {srv.AdminURL(), "--for-user", user},
			"trying": {"redis://" + user + ":" + redistest.Password + "@" + srv.Addr()},
		} {
			for _, f := range decode[report](t, neap(t, append([]string{"doctor", "--json"}, args...)...).out).Findings {
				if f.Check == "acl" && (f.OK != slow[right] || !strings.Contains(f.Detail, "lacks "+right) || !strings.HasSuffix(f.Remedy, user+" +"+right)) {
					t.Errorf("%s, without %s: got %+v, want it named alone, and broken: %v", way, right, f, !slow[right])
				}
			}
		}
	}
}

// TestDoctorTriesWithoutSet has users who lack SET, or what ends a key. Doctor names the rights that are missing, and leaves
// no key without a TTL. It does not try HSET and RPUSH if it could not end the key that they write.
func TestDoctorTriesWithoutSet(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	for missing, want := range map[string]string{
		"set rpush":              "+rpush +set",
		"set hset rpush":         "+hset +rpush +set",
		"set hset del":           "+del +hset +set",
		"set hset pexpire":       "+hset +pexpire +set",
		"set hset pexpire del":   "+del +pexpire +set", // HSET would leave a key
		"hset rpush del pexpire": "+del +hset +pexpire +rpush",
	} {
		rules := redistest.Rules
		for right := range strings.FieldsSeq(missing) {
			rules = strings.Replace(rules+" ", " +"+right+" ", " ", 1)
		}
		user := redistest.NewUser(t, rules, srv)
		neap(t, "doctor", "redis://"+user+":"+redistest.Password+"@"+srv.Addr()).wants(t, exitNot, "ACL SETUSER "+user+" "+want+"\n")
	}
	redistest.AssertNoImmortalKeys(t, srv.Admin(t), "neap")
}

// TestDoctorWithoutACL has a server without ACL, as some providers have. Doctor tries each command, and names those that
// miniredis lacks.
func TestDoctorWithoutACL(t *testing.T) {
	t.Parallel()
	neap(t, "doctor", "redis://"+miniredis.RunT(t).Addr()).wants(t, exitNot, "no command asking, ssubscribe (lock), sunsubscribe (lock), spublish (lock)\n")
}

// TestNeedsAreTheDocumentedLine compares the rights that doctor knows with those that the library's user has in all tests.
func TestNeedsAreTheDocumentedLine(t *testing.T) {
	t.Parallel()
	got := []string{"resetchannels", "&neap:*", "~neap:*", "-@all"}
	for _, n := range needs(true) {
		got = append(got, "+"+n.right)
	}
	want := strings.Fields(redistest.Rules)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	must(t, err)
	if !strings.Contains(string(page), redistest.Rules) {
		t.Error("docs/operations.md has another line")
	}
}

// TestDoctorMayKnowLess has a user with the documented rights, who may not look at the server.
func TestDoctorMayKnowLess(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	user := redistest.NewUser(t, redistest.Rules, srv)
	for _, f := range examined(t, "redis://"+user+":"+redistest.Password+"@"+srv.Addr()).Findings {
		unlooked := slices.Contains([]string{"maxmemory", "persistence", "cluster", "ttl", "memory"}, f.Check)
		if strings.Contains(f.Detail, "not looked at") != unlooked || unlooked && f.Remedy == "" {
			t.Errorf("got %+v, want it not looked at: %v", f, unlooked)
		}
	}
}

// TestDoctorWithoutEval wants the scripts loaded.
func TestDoctorWithoutEval(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	address := "redis://" + redistest.NewUser(t, redistest.LoadedRules(), srv) + ":" + redistest.Password + "@" + srv.Addr()
	if f := broken(t, address)["eval"]; !strings.Contains(f.Detail, "may not EVAL, and") {
		t.Errorf("got %+v, want it to say that scripts are missing", f)
	}
	user := redistest.NewUser(t, redistest.LoadedRules(), srv)
	if f := broken(t, srv.AdminURL(), "--for-user", user)["eval"]; !strings.Contains(f.Detail, "the user "+user+" may not EVAL, and") {
		t.Errorf("for another user: got %+v, want it to say that scripts are missing", f)
	}
	srv.LoadScripts(t)
	if got := broken(t, address); len(got) > 0 {
		t.Errorf("with the scripts loaded: got %+v, want nothing broken", got)
	}
	if got := broken(t, srv.AdminURL(), "--for-user", user); len(got) > 0 {
		t.Errorf("for another user, with the scripts loaded: got %+v, want nothing broken", got)
	}
}

// TestDoctorWithoutLua has a server whose EVAL is gone, as where Lua is a package of its own.
func TestDoctorWithoutLua(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--rename-command", "EVAL", "NOEVAL")
	if f := broken(t, srv.AdminURL())["eval"]; !strings.Contains(f.Detail, "unknown command") || !strings.Contains(f.Remedy, "Lua") {
		t.Errorf("got %+v, want it to say that EVAL is unknown", f)
	}
}

// TestAShortPasswordLeavesTheRemedy: a password that is a word of the remedy does not hide it.
func TestAShortPasswordLeavesTheRemedy(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	must(t, srv.Admin(t).ACLSetUser(t.Context(), "short", append(strings.Fields(redistest.Without(t, "+hset")), "on", ">hset")...).Err())
	neap(t, "doctor", "redis://short:hset@"+srv.Addr()).wants(t, exitNot, "ACL SETUSER short +hset")
}
