package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
)

// place is a Redis under a prefix of the test's own, as the library and as the command see it.
type place struct {
	store *store.Store
	flags []string
}

// with are the arguments of a command here.
func (p place) with(args ...string) []string { return slices.Concat(args, p.flags) }

// each runs a test on a server and on a cluster.
func each(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		srv := redistest.Standalone(t)
		test(t, at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), nil))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.Cluster(t)
		test(t, at(t, c.Client(t), c.Nodes()[1].AdminURL(), c.Prefix(t), nil))
	})
}

func at(t *testing.T, rdb redis.UniversalClient, url, prefix string, secret []byte) place {
	t.Helper()
	st, err := store.Open(rdb, &store.Options{Prefix: prefix, Budget: 10 * time.Second, SubjectSecret: secret})
	must(t, err)
	return place{st, []string{"--url", url, "--prefix", prefix}}
}

func (p place) limiter(t *testing.T, policies ...limit.Policy) *limit.Limiter {
	t.Helper()
	l, err := limit.New(p.store, "api", policies, &limit.Options{Fail: store.FailClosed})
	must(t, err)
	return l
}

func take(t *testing.T, l *limit.Limiter, subject string, n int) {
	t.Helper()
	for range n {
		if _, err := l.Take(t.Context(), subject); err != nil {
			t.Fatal(err)
		}
	}
}

var everyPolicy = []limit.Policy{
	limit.TokenBucket{Rate: 10, Per: time.Hour, Burst: 20},
	limit.FixedWindow{Name: "hourly", Limit: 1000, Window: time.Hour, MaxDebt: 7},
	limit.SlidingWindow{Limit: 100, Window: 90 * time.Minute},
	limit.SlidingLog{Limit: 50, Window: 1500 * time.Second},
	limit.CalendarWindow{Limit: 90, Every: limit.Month},
	limit.WithBan(limit.FixedWindow{Name: "login", Limit: 30, Window: time.Hour}, limit.Ban{After: 5, Within: time.Minute, For: time.Minute}),
}

// TestPeekTellsWhatTheAPIDoes compares each policy's figures, read from the keys and given.
func TestPeekTellsWhatTheAPIDoes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		l := p.limiter(t, everyPolicy...)
		take(t, l, "ip=203.0.113.7", 13)
		take(t, l, "ip=203.0.113.8", 25)
		d, err := l.Peek(t.Context(), "ip=203.0.113.7")
		must(t, err)
		want := map[string]int64{}
		for s := range d.States() {
			want[s.Policy] = s.Remaining
		}
		given := []string{
			"--policy", "bucket 10/1h burst 20", "--policy", "window 1000/1h debt 7 name hourly", "--policy", "sliding 100/90m", "--policy", "log 50/1500s",
			"--policy", "calendar 90/month", "--policy", "window 30/1h name login ban 5/1m for 1m",
		}
		for name, args := range map[string][]string{"from keys": nil, "given": given} {
			got := read[tally](t, exitFound, p.with(append([]string{"peek", "api", "ip=203.0.113.7"}, args...)...)...)
			if !got.Allowed || len(got.Policies) != len(want) || got.Subject != "ip=203.0.113.7" {
				t.Errorf("%s: got %+v, want it allowed by %d policies", name, got, len(want))
			}
			for _, line := range got.Policies {
				of, err := readPolicy(line.Policy)
				must(t, err)
				if left, is := want[of.PolicyName()]; !is || line.Remaining != left || line.ResetAfter <= 0 {
					t.Errorf("%s: got %+v, want %d left", name, line, left)
				}
			}
		}
		denied := read[tally](t, exitFound, p.with("peek", "api", "ip=203.0.113.8")...)
		if denied.Allowed || denied.RetryAfter < 300_000 {
			t.Errorf("got %+v, want it denied for 6 minutes", denied)
		}
		if got := read[tally](t, exitFound, p.with("peek", "api", "ip=203.0.113.7", "--cost", "8")...); got.Allowed {
			t.Errorf("got %+v, want 8 permits of 7 denied", got)
		}
		for _, cost := range []string{"21", "-1"} {
			neap(t, p.with("peek", "api", "ip=203.0.113.7", "--cost="+cost)...).wants(t, exitUsage, "a cost of "+cost)
		}
		neap(t, p.with("peek", "api", "ip=203.0.113.9")...).wants(t, exitNot, "api has counted nothing of ip=203.0.113.9.", "api has other subjects. One of them is ip=203.0.113.")
		for _, command := range [][]string{{"peek"}, {"reset", "-y"}, {"unban"}} {
			neap(t, p.with(append(command, "web", "ip=203.0.113.7")...)...).wants(t, exitNot, "No key in Redis is of a limiter web: check the name.")
			if command[0] != "unban" { // which asks about the bans of all
				neap(t, p.with(append(command, "api", "tenant")...)...).wants(t, exitNot, "One of them is ip=203.0.113.")
			}
		}
		if r := neap(t, p.with("unban", "api", "ip=203.0.113.7")...); strings.Contains(r.out, "other subjects") {
			t.Errorf("of a subject that is counted and not banned: got %q, want no other subject", r.out)
		}
		neap(t, p.with("peek", "api", "ip=203.0.113.9", "--policy", "window 5/1h")...).wants(t, exitNot, "may go on", "One of them is ip=203.0.113.")
		neap(t, p.with("reset", "-y", "api", "tenant", "--policy", "window 5/1h")...).wants(t, exitNot, "One of them is ip=203.0.113.")
		neap(t, p.with("peek", "api", "ip=203.0.113.8")...).wants(t, exitFound, "denied for", "bucket 10/1h burst 20", "ip=203.0.113.8 is denied for ")
	})
}

func TestResetForgets(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		l := p.limiter(t, everyPolicy...)
		take(t, l, "user", 3)
		take(t, l, "other", 3)
		answering(t, "no\n", p.with("reset", "api", "user")...).wants(t, exitLeft, "Forget what api has counted of user", "nothing was changed")
		answering(t, "", p.with("reset", "api", "user")...).wants(t, exitLeft)
		if d, err := l.Peek(t.Context(), "user"); err != nil || d.Remaining != 17 {
			t.Errorf("got %+v, %v, want 17 left", d, err)
		}
		answering(t, "y\n", p.with("reset", "api", "user")...).wants(t, exitFound, "It is forgotten")
		for subject, left := range map[string]int64{"user": 20, "other": 17} {
			if d, err := l.Peek(t.Context(), subject); err != nil || d.Remaining != left {
				t.Errorf("%s: got %+v, %v, want %d left", subject, d, err, left)
			}
		}
		neap(t, p.with("reset", "api", "user", "--yes")...).wants(t, exitNot, "counted nothing")
		if got := read[done](t, exitFound, p.with("reset", "api", "other", "-y")...); !got.Found || got.Name != "api" || got.Subject != "other" {
			t.Errorf("got %+v, want it found", got)
		}
	})
}

func TestBansAreTheLimiters(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		l := p.limiter(t, limit.WithBan(limit.FixedWindow{Limit: 1, Window: time.Hour}, limit.Ban{After: 2, Within: time.Hour, For: time.Hour}))
		neap(t, p.with("ban", "api", "user", "--for", "10m")...).wants(t, exitUsage, "--policy", "no key of api has the numbers of a ban", "nothing can be banned")
		neap(t, p.with("unban", "api", "user")...).wants(t, exitNot, "not banned")
		// A key in the slot of the subject tells its server the policy.
		take(t, l, "user", 3)
		neap(t, p.with("unban", "api", "user")...).wants(t, exitFound, "lifted")
		take(t, l, "user", 1)
		neap(t, p.with("ban", "api", "user", "--for", "10m")...).wants(t, exitFound, "banned for 10m under window 1/1h ban 2/1h for 1h max 1h")
		if left, err := l.Banned(t.Context(), "user"); err != nil || left < 9*time.Minute || left > 10*time.Minute {
			t.Errorf("got a ban of %v, %v, want one of 10 minutes", left, err)
		}
		if got := read[tally](t, exitFound, p.with("peek", "api", "user")...); got.Allowed || !got.Policies[0].Banned {
			t.Errorf("got %+v, want a ban", got)
		}
		neap(t, p.with("unban", "api", "user")...).wants(t, exitFound)
		neap(t, p.with("unban", "api", "user")...).wants(t, exitNot)
		if left, err := l.Banned(t.Context(), "user"); err != nil || left != 0 {
			t.Errorf("got a ban of %v, %v, want none", left, err)
		}
		neap(t, p.with("ban", "api", "new", "--for", "1m", "--policy", "window 1/1h ban 2/1h for 1h")...).wants(t, exitFound)
		if left, _ := l.Banned(t.Context(), "new"); left == 0 {
			t.Error("got no ban of a policy that was given, want one")
		}
		neap(t, p.with("ban", "api", "user", "--for", "-1m")...).wants(t, exitUsage)
	})
}

// TestABanThatMayStopNobodyIsNoted gives policies. The service has only the first of them.
func TestABanThatMayStopNobodyIsNoted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		const own = "window 1/1h ban 2/1h for 1h"
		take(t, p.limiter(t, limit.WithBan(limit.FixedWindow{Limit: 1, Window: time.Hour}, limit.Ban{After: 2, Within: time.Hour, For: time.Hour})), "user", 3)
		plain, err := limit.New(p.store, "plain", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, nil)
		must(t, err)
		take(t, plain, "user", 3)
		ban := limit.Ban{After: 1, Within: time.Hour, For: time.Hour}
		filled, err := limit.New(p.store, "defaults", []limit.Policy{
			limit.WithBan(limit.TokenBucket{Rate: 2, Per: time.Hour}, ban), limit.WithBan(limit.CalendarWindow{Limit: 2, Every: limit.Day}, ban),
		}, nil)
		must(t, err)
		take(t, filled, "user", 3)
		kept, err := limit.New(p.store, "somekept", []limit.Policy{
			limit.KeepOnChange(limit.FixedWindow{Name: "kept", Limit: 5, Window: time.Hour}), limit.FixedWindow{Limit: 5, Window: time.Hour},
		}, nil)
		must(t, err)
		take(t, kept, "user", 1)
		const another = "under window 2/1h now. Subjects are counted under window 1/1h."
		for _, c := range []struct{ name, policy, note string }{
			{"api", own, ""},
			{"api", own + " max 1h", ""},
			{"api", "window 1/1h ban 2/1h for 2h", "does not show whether api bans under window 1/1h ban 2/1h for 2h"},
			{"api", "window 2/1h ban 2/1h for 1h", another},
			{"api", "window 2/1h ban 2/1h for 1h", another}, // although the last ban has made a key of it
			{"api", "bucket 1/1h burst 1 ban 2/1h for 1h", "under bucket 1/1h burst 1 now."},
			{"plain", own, "does not show whether plain bans"},
			{"defaults", "bucket 2/1h ban 1/1h for 1h", ""},
			{"defaults", "calendar 2/day ban 1/1h for 1h", ""},
			{"somekept", "window 3/1h ban 2/1h for 1h", ""}, // a key of KeepOnChange may be of any numbers
			{"nobodys", own, "No key in Redis is of a limiter nobodys: check the name."},
		} {
			got := read[done](t, exitFound, p.with("ban", c.name, "user", "--for", "1m", "--policy", c.policy)...)
			if c.note == "" && len(got.Notes) > 0 || c.note != "" && (len(got.Notes) != 1 || !strings.Contains(got.Notes[0], c.note)) {
				t.Errorf("%s of %s: got the notes %q, want %q in the only one", c.policy, c.name, got.Notes, c.note)
			}
		}
		neap(t, p.with("ban", "api", "user", "--for", "1m", "--policy", "window 3/1h ban 2/1h for 1h")...).wants(t, exitFound, "this ban stops nobody")
		neap(t, p.with("ban", "api", "user", "--for", "1m", "--policy", "window 1/1h")...).wants(t, exitUsage, `--policy "window 1/1h" has no ban`)
	})
}

// TestKeptNeedsItsNumbers asks for what no key has.
func TestKeptNeedsItsNumbers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		l := p.limiter(t, limit.KeepOnChange(limit.FixedWindow{Name: "hourly", Limit: 10, Window: time.Hour}))
		take(t, l, "user", 4)
		for _, command := range []string{"peek", "reset"} {
			neap(t, p.with(command, "api", "user")...).wants(t, exitUsage, "hourly!kept-window-1h", "--policy")
		}
		given := []string{"--policy", "window 10/1h name hourly kept"}
		if got := read[tally](t, exitFound, p.with(append([]string{"peek", "api", "user"}, given...)...)...); got.Policies[0].Remaining != 6 {
			t.Errorf("got %+v, want 6 left", got)
		}
		neap(t, p.with(append([]string{"reset", "api", "user", "-y"}, given...)...)...).wants(t, exitFound)
		if d, err := l.Peek(t.Context(), "user"); err != nil || d.Remaining != 10 {
			t.Errorf("got %+v, %v, want it reset", d, err)
		}
	})
}

// TestTwoVersionsOfAPolicy has the keys of a name's old numbers and its new ones, after a deploy.
func TestTwoVersionsOfAPolicy(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		for i, n := range []int64{10, 20} {
			take(t, p.limiter(t, limit.FixedWindow{Name: "hourly", Limit: n, Window: time.Hour}), "user", i+1)
		}
		got := read[tally](t, exitFound, p.with("peek", "api", "user")...)
		left := map[string]int64{}
		for _, line := range got.Policies {
			left[line.Policy] = line.Remaining
		}
		if want := map[string]int64{"window 10/1h name hourly": 9, "window 20/1h name hourly": 18}; !reflect.DeepEqual(left, want) {
			t.Errorf("got %v left, want %v", left, want)
		}
	})
}

// TestHashedSubjects finds a subject by itself, with the secret if there is one, and by the hash that Redis has.
func TestHashedSubjects(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	secret := "a secret of the service"
	file := t.TempDir() + "/secret"
	writeFile(t, file, secret+"\n")
	p := at(t, srv.Client(t), srv.AdminURL(), srv.Prefix(t), []byte(secret))
	take(t, p.limiter(t, limit.FixedWindow{Limit: 10, Window: time.Hour}), "user", 3)
	neap(t, p.with("peek", "api", "user")...).wants(t, exitNot)
	if got := read[tally](t, exitFound, p.with("peek", "api", "user", "--secret-file", file)...); got.Policies[0].Remaining != 7 {
		t.Errorf("got %+v, want 7 left", got)
	}
	shown := read[topPage](t, exitFound, p.with("top")...)
	hash := shown.Subjects[0].Subject
	if !shown.Subjects[0].Hashed || !strings.HasPrefix(hash, "#") {
		t.Fatalf("got %+v, want a hash, and that it is one", shown)
	}
	neap(t, p.with("top")...).wants(t, exitFound, hash, "is a hash", "SubjectSecret")
	neap(t, p.with("reset", "api", hash, "-y")...).wants(t, exitFound)
	neap(t, p.with("peek", "api", "user", "--secret-file", file)...).wants(t, exitNot)
	writeFile(t, file, "short")
	neap(t, p.with("peek", "api", "user", "--secret-file", file)...).wants(t, exitUsage, "SubjectSecret has 5 bytes")
	neap(t, p.with("peek", "api", "user", "--secret-file", file+"2")...).wants(t, exitUsage)
}

// TestEveryTermIsRead: a policy may be given as the service has it, whatever its terms are.
func TestEveryTermIsRead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		texts := []string{ // a limiter reports shadow policies last
			"bucket 10/1h burst 20 unit tokens name trial shadow", "window 5/1h name counted unit tokens kept lease 1m", "sliding 7/1h name calls per-request",
			"log 8/1h name log unit tokens", "calendar 9/day in Asia/Shanghai debt 3 name day unit tokens ban 5/1m for 10m max 1h",
		}
		policies := make([]limit.Policy, len(texts))
		var given []string
		for i, text := range texts {
			of, err := limit.ParsePolicy(text)
			must(t, err)
			policies[i], given = of, append(given, "--policy", text)
		}
		take(t, p.limiter(t, policies...), "user", 2)
		got := read[tally](t, exitFound, p.with(append([]string{"peek", "api", "user"}, given...)...)...)
		left := map[string]int64{}
		for _, line := range got.Policies {
			of, err := readPolicy(line.Policy)
			must(t, err)
			left[of.PolicyName()] = line.Remaining
		}
		if want := map[string]int64{"trial": 18, "counted": 3, "calls": 5, "log": 6, "day": 7}; !reflect.DeepEqual(left, want) {
			t.Errorf("got %v left, want %v", left, want)
		}
	})
}

func TestPoliciesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "bucket", "bucket 10", "bucket 10/s", "bukket 10/1s", "bucket ten/1s", "window 10/1h burst 5", "log 10/1h debt 5", "calendar 10/year", "calendar 10/day in Nowhere",
		"window 10/1h name", "window 10/1h name a!b", "window 10/1h ban", "window 10/1h ban 5/1m", "window 10/1h ban 5/1m for", "window 0/1h", "window 10/1h kept", "\x1b[2J 10/1h", "window 10/1h shadow name a shadow",
	} {
		got := neap(t, "peek", "api", "user", "--policy", text, "--url", "redis://127.0.0.1:1", "--timeout", "1s")
		if got.code == exitAway { // not faulty to the command alone, but to the library
			got = neap(t, "peek", "api", "user", "--policy", text, "--url", redistest.Standalone(t).AdminURL())
		}
		got.wants(t, exitUsage)
		unharmed(t, fmt.Sprintf("--policy %q", text), got)
	}
}

// TestAShadowMayBeMeant: keys do not tell a shadow from a policy that denies, and a policy that is given does.
func TestAShadowMayBeMeant(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		take(t, p.limiter(t, limit.Shadow(limit.FixedWindow{Limit: 1, Window: time.Hour})), "user", 2)
		const note = "A limit.Shadow looks here as if it were enforced"
		neap(t, p.with("peek", "api", "user")...).wants(t, exitFound, "user is denied for ", note)
		neap(t, p.with("top")...).wants(t, exitFound, "1 of them denied", note)
		for _, command := range [][]string{{"peek", "api", "user"}, {"top", "api"}} {
			got := neap(t, p.with(append(command, "--policy", "window 1/1h shadow")...)...)
			if got.code != exitFound || strings.Contains(got.out, note) || strings.Contains(got.out, "user is denied") {
				t.Errorf("%q of a shadow: got %+v, want it allowed, and no note", command, got)
			}
		}
	})
}

// TestAHoldIsShown, also if nothing is counted of its subject, and a reset lifts it.
func TestAHoldIsShown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p place) {
		l, err := limit.New(p.store, "api", []limit.Policy{limit.FixedWindow{Limit: 5, Window: time.Hour}}, &limit.Options{Fail: store.FailClosed, Holds: true})
		must(t, err)
		take(t, l, "counted", 1)
		for subject, policies := range map[string]string{"counted": "window 5/1h", "fresh": "window 1/1h name on-hold"} {
			must(t, l.Hold(t.Context(), subject, time.Hour))
			got := read[tally](t, exitFound, p.with("peek", "api", subject)...)
			if got.Allowed || got.RetryAfter < 3_500_000 || len(got.Policies) != 1 || !got.Policies[0].OnHold || got.Policies[0].Policy != policies {
				t.Errorf("%s: got %+v, want it on hold for an hour, under %s", subject, got, policies)
			}
			neap(t, p.with("peek", "api", subject)...).wants(t, exitFound, "on hold", "is denied for ")
			answering(t, "n\n", p.with("reset", "api", subject)...).wants(t, exitLeft, "and lift its hold if it has one?")
			neap(t, p.with("reset", "api", subject, "--yes")...).wants(t, exitFound, "It is forgotten")
			if d, err := l.Peek(t.Context(), subject); err != nil || !d.Allowed {
				t.Errorf("%s after a reset: got %+v, %v, want it allowed", subject, d, err)
			}
		}
	})
}
