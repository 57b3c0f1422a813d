package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/lock"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/redistest"
)

// TestThePageIsTrue runs the commands of docs/command.md, one after the other, and compares what they print.
func TestThePageIsTrue(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	p := at(t, srv.Client(t), srv.AdminURL(), "neap", nil)
	furnish(t, p)
	must(t, srv.Admin(t).ACLSetUser(t.Context(), "without-hset", strings.Fields(redistest.Without(t, "+hset"))...).Err())
	text, err := os.ReadFile("../../docs/command.md")
	must(t, err)
	blocks := regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 8 {
		t.Fatalf("the page has %d blocks, want 8 at least", len(blocks))
	}
	env := map[string]string{"REDIS_URL": "redis://" + redistest.NewUser(t, operatorRules(t), srv) + ":" + redistest.Password + "@" + srv.Addr()}
	for _, block := range blocks {
		for _, one := range strings.Split("\n"+block[1], "\n$ neap ")[1:] {
			line, want, _ := strings.Cut(one, "\n")
			got := inEnv(t, env, "", shellWords(line)...)
			if got.errs != "" || !strings.HasPrefix(levelled(got.out), levelled(want)) || !strings.Contains(line, "--json") && levelled(got.out) != levelled(want) {
				t.Errorf("neap %s\nprinted, levelled:\n%s%s\nand the page has:\n%s", line, levelled(got.out), got.errs, levelled(want))
			}
		}
	}
	if got := inEnv(t, env, "", "doctor", "--for-user", "without-hset", "--json"); !strings.Contains(string(text), `the user without-hset lacks hset (lock,
stock)","remedy":"ACL SETUSER without-hset +hset"`) || !strings.Contains(got.out, `"the user without-hset lacks hset (lock, stock)"`) {
		t.Errorf("the page has another finding than %s", got.out)
	}
}

// operatorRules are the rules that the page has for an operator's user.
func operatorRules(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/command.md")
	must(t, err)
	line := regexp.MustCompile(`ACL SETUSER ops reset on >PASSWORD RULES (.*)`).FindStringSubmatch(string(page))
	if line == nil {
		t.Fatal("the page has no line for an operator's user")
	}
	return redistest.Rules + " " + line[1]
}

// furnish is what the page's Redis has.
func furnish(t *testing.T, p place) {
	t.Helper()
	take(t, p.limiter(t, limit.FixedWindow{Limit: 1000, Window: time.Hour}), "ip=203.0.113.7", 997)
	take(t, p.limiter(t, limit.FixedWindow{Limit: 1000, Window: time.Hour}), "header:x-api-key=k-1", 1001)
	login, err := limit.New(p.store, "login", []limit.Policy{limit.WithBan(limit.FixedWindow{Name: "login", Limit: 5, Window: 10 * time.Minute},
		limit.Ban{After: 3, Within: 10 * time.Minute, For: 15 * time.Minute})}, nil)
	must(t, err)
	take(t, login, "form:email=bob@example.com", 8)
	locker, err := lock.New(p.store, "orders", nil)
	must(t, err)
	held, err := locker.As("worker-3").Acquire(t.Context(), "param:order=17")
	must(t, err)
	t.Cleanup(func() { _ = held.Release(context.Background()) })
	guard, err := idempotency.New(p.store, "payments", idempotency.Reject{}, nil)
	must(t, err)
	run, err := guard.Begin(t.Context(), "message-17", "")
	must(t, err)
	must(t, run.Claim.Conclude(t.Context(), idempotency.Unknown()))
	items, err := stock.New(p.store, "sale", nil)
	must(t, err)
	_, err = items.Open(t.Context(), "phone", 10, time.Now().Add(time.Hour))
	must(t, err)
	_, err = items.Reserve(t.Context(), "phone", "ann", "order-17", &stock.ReserveOptions{Quantity: 2, Keep: true})
	must(t, err)
	_, err = items.Reserve(t.Context(), "phone", "bob", "order-18", &stock.ReserveOptions{Confirm: true})
	must(t, err)
}

// varying is what is another each time.
var varying = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`redis \d\S*|valkey \d\S*`), "SERVER"},
	{regexp.MustCompile(`the user \S+ may do all`), "the user ADMIN may do all"},
	{regexp.MustCompile(`\b\d{16}\b`), "FENCE"},
	{regexp.MustCompile(`[\d.]+( [KMG]i)? ?B\b`), "BYTES"},
	{regexp.MustCompile(`\d+ commands`), "COMMANDS"},
	{regexp.MustCompile(`\b([\d.]+(h|ms|µs|m|s))+(\s|,|\.|$)`), "TIME$3"},
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`^(note|BROKEN) latency`), "ok latency"},
}

// levelled is a text without what varies.
func levelled(text string) string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-> look for slow commands") || strings.HasPrefix(line, "-> set MinIdleConns") || strings.HasPrefix(line, "-> move Redis nearer") {
			continue // of a machine that is busy
		}
		for _, v := range varying {
			line = v.what.ReplaceAllString(line, v.as)
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

// shellWords are those of a command line, where quotes may hold spaces.
func shellWords(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
