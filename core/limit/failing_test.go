package limit

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/wire"
	"github.com/neap-go/neap/core/limit/internal/kind"
	limitwire "github.com/neap-go/neap/core/limit/internal/wire"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
	"github.com/neap-go/neap/lua"
)

// attempt is a call of a script that may fail half-way.
type attempt struct {
	script *script.Script
	keys   []string
	args   []any
}

// attempts are the calls of a limiter's scripts on a subject.
func attempts(l *Limiter, subject string, costs ...int64) (all []attempt) {
	keys := l.remote.Keys(subject)
	for _, cost := range costs {
		all = append(all, attempt{l.remote.Script, keys, l.remote.Args(cost, "token")})
	}
	if l.set.Bans {
		for _, duration := range []string{"-1", "0", "1000"} {
			all = append(all, attempt{limitwire.BanScript, keys[len(keys)-1:], []any{duration, "1000"}})
		}
	}
	if l.set.Overrides {
		key := keys[len(l.set.Rules) : len(l.set.Rules)+1]
		for duration, text := range map[string]string{"60000": "window 9/1h", "0": "", "-1": ""} {
			all = append(all, attempt{limitwire.OverrideScript, key, []any{duration, text}})
		}
	}
	if l.set.Leases {
		all = append(all, attempt{limitwire.RenewScript, keys[len(keys)-1:], []any{"60000", "token:1"}})
	}
	return append(all, attempt{limitwire.ResetScript, keys, nil})
}

// TestEachCommandMadeToFail makes each command of each script fail in turn, in every
// state that a subject can have. The answer is an error, never a decision, and no key is
// left without a time to live.
func TestEachCommandMadeToFail(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin := srv.Admin(t)
	prefix := srv.Prefix(t)
	seen := map[string]bool{}
	const many = 4500 // more than a script unpacks at once
	cases := []struct {
		policies        []Policy
		many, overrides bool
	}{
		{policies: OneOfEach},
		{policies: WithBans},
		{policies: withLeases},
		{policies: []Policy{CalendarWindow{Limit: 5, Every: Month}, FixedWindow{Limit: 5, Window: time.Hour}}},
		{policies: []Policy{WithBan(FixedWindow{Limit: 5, Window: time.Hour}, Ban{After: 2, Within: time.Hour, For: time.Hour})}},
		{policies: []Policy{SlidingLog{Limit: 2 * many, Window: time.Hour}}, many: true},
		{policies: []Policy{SlidingLog{Limit: 2 * many, Window: time.Hour}, FixedWindow{Limit: 1e6, Window: time.Hour}}, many: true},
		{policies: []Policy{KeepOnChange(FixedWindow{Name: "kept", Limit: 5, Window: time.Hour})}, overrides: true},
	}
	for _, p := range OneOfEach {
		if p.PolicyName() != "fast" { // or else the second of two merged calls is never denied
			p = Set(p, int64(5), "Burst", "Limit")
		}
		cases = append(cases, cases[0])
		cases[len(cases)-1].policies = []Policy{p}
	}
	for i, c := range cases {
		opts := closed(patience)
		opts.Overrides = c.overrides
		l := must(New(storetest.At(t, srv.Client(t), prefix), "failing", c.policies, opts))(t)
		states, costs := slices.Collect(maps.Keys(spoils)), []int64{0, 1, 3}
		if c.many { // a second in each state
			states, costs = []string{"fresh", "in use", "from the future"}, []int64{many}
		}
		for _, name := range states {
			subject := fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), i)
			spoils[name](t, admin, l, subject, max(costs[0], 1))
			before := redistest.Save(t, admin, l.remote.Keys(subject))
			by := (*wire.Script)(l.remote.Script).Merging()
			if by != nil && (l.remote.Alone || slices.Contains([]string{"in use", "denied", "from the future"}, name)) {
				failMany(t, admin, l, subject, by, before, fmt.Sprintf("%s, %s, set %d", by.Script.Name(), name, i))
			}
			for _, a := range attempts(l, subject, costs...) { // at last a reset
				seen[a.script.Name()] = true
				failEach(t, admin, a, before, fmt.Sprintf("%s, %s, set %d", a.script.Name(), name, i))
			}
		}
	}
	for i, policies := range append(slices.Collect(slices.Chunk(OneOfEach, 1)), OneOfEach, withLeases) {
		l := must(New(storetest.At(t, srv.Client(t), prefix), "failing", policies, closed(patience)))(t)
		for _, others := range []int64{0, 2} { // they leave something there
			subject := fmt.Sprintf("refund-%d-%d", i, others)
			at := kind.Moment{Soonest: redistest.Time(t, admin).UnixMicro()}
			d := must(l.TakeN(t.Context(), subject, 3))(t)
			if at.Latest = redistest.Time(t, admin).UnixMicro(); others > 0 {
				use(t, admin, l, subject, others)
			}
			keys, args := l.remote.ToConclude(&limitwire.Conclusion{Request: &d.request.Request, Marker: "token"})
			seen[l.remote.Settle.Name()] = true
			before := redistest.Save(t, admin, keys)
			failEach(t, admin, attempt{l.remote.Settle, keys, args([]any{kind.Integer(at.Soonest), kind.Integer(at.Latest), "0"})}, before, fmt.Sprintf("refund, set %d", i))
			for _, actual := range []int64{1, 4} {
				keys, args := l.remote.ToConclude(&limitwire.Conclusion{Request: &d.request.Request, Settles: true, Actual: actual, Marker: "token"})
				at := []any{kind.Integer(at.Soonest), kind.Integer(at.Latest), "0"}
				redistest.Restore(t, admin, before) // what a refund leaves may end within milliseconds
				failEach(t, admin, attempt{l.remote.Settle, keys, args(at)}, redistest.Save(t, admin, keys), fmt.Sprintf("settled to %d, set %d", actual, i))
			}
		}
	}
	names := strings.Join(slices.Collect(maps.Keys(seen)), "\n")
	parts, err := filepath.Glob("../../lua/limits/*.lua")
	if err != nil || len(parts) == 0 {
		t.Fatalf("the parts of scripts: got %v, %v, want at least one", parts, err)
	}
	for _, file := range parts {
		part := strings.TrimSuffix(filepath.Base(file), ".lua")
		drivers := []string{"take"}
		switch {
		case slices.Contains([]string{"shared", "now", "settled", "take", "settle"}, part):
			continue // every script has them, or is named for them
		case slices.Contains(lua.Kinds, part):
			drivers = append(drivers, "settle")
		}
		for _, driver := range drivers {
			if has, err := regexp.MatchString(`limit_`+driver+`\(.*\b`+part+`\b.*\)`, names); err != nil || !has {
				t.Errorf("%s: got no %s script with it whose commands failed: give this test a case", file, driver)
			}
		}
	}
	files, err := filepath.Glob("../../lua/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("the scripts in ../../lua: got %v, %v, want at least one", files, err)
	}
	for _, file := range files {
		if of, _, _ := strings.Cut(filepath.Base(file), "_"); of != "limit" {
			continue // other packages do
		}
		if !seen[filepath.Base(file)] {
			t.Errorf("%s: got no command that failed, want each to fail once: give this test a case for the script", filepath.Base(file))
		}
	}
}

// TestNoEstimateIsKeptWithoutACharge: Redis stores the estimate of the first window and refuses
// that of the second. Otherwise the first would give back later what nobody took.
func TestNoEstimateIsKeptWithoutACharge(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin := srv.Admin(t)
	l := must(New(storetest.At(t, srv.Client(t), srv.Prefix(t)), "kept", withLeases, closed(patience)))(t)
	keys := l.remote.Keys("s")
	states, estimates := keys[:len(withLeases)], keys[len(withLeases):]
	must(admin.Set(t.Context(), estimates[1], "no set", time.Hour).Result())(t)
	if _, err := l.Take(t.Context(), "s"); !errors.Is(err, script.ErrFailed) {
		t.Errorf("a take whose second estimate is refused: got %v, want ErrFailed", err)
	}
	if n := admin.Exists(t.Context(), append(states, estimates[0])...).Val(); n != 0 {
		t.Errorf("after it: got %d keys of policies and of the first estimate, want none", n)
	}
}

// failMany is FailEach for merged calls, of two runs: after a failure the answer is an error, or it says for a run
// that nothing was done.
func failMany(t *testing.T, admin *redis.Client, l *Limiter, subject string, by *wire.Merging, before []redistest.Saved, where string) {
	t.Helper()
	keys := l.remote.Keys(subject)
	args := append(slices.Clone(by.Lead), l.remote.Common()...)
	for l.remote.Alone && len(args) < len(by.Lead)+by.Numbers {
		args = append(args, "0")
	}
	for _, run := range []struct {
		cost  int64
		calls string
	}{{1, "2"}, {3, "1"}} {
		for _, r := range l.set.Rules {
			args = append(args, kind.Integer(r.Units(run.cost)))
		}
		args = append(args, run.calls)
	}
	through := 0
	for n := 1; through < 3; n++ {
		mortal := redistest.Restore(t, admin, before)
		reply, err := admin.Eval(t.Context(), redistest.Failing(by.Script.Source(), n), slices.Concat(keys, keys), args...).Int64Slice()
		switch {
		case n == 200:
			t.Fatalf("%s: got a failure still at command %d, want the script to run through", where, n)
		case err != nil && !strings.Contains(err.Error(), "made to fail"):
			t.Fatalf("%s: command %d: got %v, want no error, or that it was made to fail", where, n, err)
		case err == nil && reply[0] >= 0 && reply[by.Told] >= 0:
			through++
		case through > 0 && !l.set.Bans:
			t.Fatalf("%s: got a failure at command %d only, want the failure before it noticed too", where, n)
		default: // a denial of the first run may go uncounted
			through = 0
		}
		for _, key := range keys {
			if admin.PTTL(t.Context(), key).Val() == -1 && mortal[key] {
				t.Errorf("%s: after command %d failed (%v, %v): got a key that never expires, want a time to live", where, n, reply, err)
			}
		}
	}
}

func failEach(t *testing.T, admin *redis.Client, a attempt, before []redistest.Saved, where string) {
	t.Helper()
	redistest.FailEach(t, admin, redistest.Attempt{Source: a.script.Source(), Keys: a.keys, Args: a.args}, before, where, nil)
}

// spoils bring a subject into the states that a script may find.
var spoils = map[string]func(t *testing.T, admin *redis.Client, l *Limiter, subject string, cost int64){
	"fresh":  func(*testing.T, *redis.Client, *Limiter, string, int64) {},
	"in use": use,
	"full":   fill,
	"denied": deny,
	"denied, immortal": func(t *testing.T, admin *redis.Client, l *Limiter, subject string, cost int64) {
		deny(t, admin, l, subject, cost)
		for _, key := range l.remote.Keys(subject) {
			admin.Persist(t.Context(), key)
		}
	},
	"denied, from the future": func(t *testing.T, a *redis.Client, l *Limiter, s string, n int64) {
		deny(t, a, l, s, n)
		shift(t, a, l, s, 24*time.Hour)
	},
	"immortal": func(t *testing.T, admin *redis.Client, l *Limiter, subject string, cost int64) {
		use(t, admin, l, subject, cost)
		for _, key := range l.remote.Keys(subject) {
			admin.Persist(t.Context(), key)
		}
	},
	"long": func(t *testing.T, admin *redis.Client, l *Limiter, subject string, cost int64) {
		use(t, admin, l, subject, cost)
		for _, key := range l.remote.Keys(subject) {
			admin.PExpire(t.Context(), key, 24*time.Hour)
		}
	},
	"from the future": func(t *testing.T, a *redis.Client, l *Limiter, s string, n int64) {
		use(t, a, l, s, n)
		shift(t, a, l, s, 24*time.Hour)
	},
	"partly left": func(t *testing.T, a *redis.Client, l *Limiter, s string, n int64) {
		use(t, a, l, s, n)
		shift(t, a, l, s, -2*time.Hour)
		use(t, a, l, s, n)
	},
	"full, from the future": func(t *testing.T, a *redis.Client, l *Limiter, s string, n int64) {
		fill(t, a, l, s, n)
		shift(t, a, l, s, 24*time.Hour)
	},
}

func use(t *testing.T, _ *redis.Client, l *Limiter, subject string, cost int64) {
	t.Helper()
	must(l.TakeN(t.Context(), subject, cost))(t)
}

// fill takes all there is.
func fill(t *testing.T, admin *redis.Client, l *Limiter, subject string, _ int64) {
	t.Helper()
	use(t, admin, l, subject, must(l.Peek(t.Context(), subject))(t).Remaining)
}

// deny takes all there is, and asks for more.
func deny(t *testing.T, admin *redis.Client, l *Limiter, subject string, cost int64) {
	t.Helper()
	fill(t, admin, l, subject, cost)
	most := int64(kind.Exact)
	for _, r := range l.set.Rules {
		most = min(most, r.Limit)
	}
	must(l.TakeN(t.Context(), subject, most))(t)
}

// shift moves what stands in a log, a fast bucket or a ban's record in time, as if
// the server's clock had been set.
func shift(t *testing.T, admin *redis.Client, l *Limiter, subject string, by time.Duration) {
	t.Helper()
	ctx := t.Context()
	for _, rule := range l.set.Rules {
		key := l.remote.Space.Key(subject, rule.Tail)
		if rule.Ban != nil {
			of := l.remote.Space.Key(subject, rule.Ban.Tail)
			var last, length, from, denials int64
			if n, _ := fmt.Sscanf(admin.Get(ctx, of).Val(), "%d:%d:%d:%d", &last, &length, &from, &denials); n == 4 {
				last, from = last+by.Milliseconds(), from+by.Milliseconds()
				admin.Set(ctx, of, fmt.Sprintf("%d:%d:%d:%d", last, length, from, denials), redis.KeepTTL)
			}
		}
		switch rule.Kind {
		case "log":
			for at, entry := range admin.LRange(ctx, key, 0, -1).Val() {
				admin.LSet(ctx, key, int64(at), must(strconv.ParseInt(entry, 10, 64))(t)+by.Microseconds())
			}
		case "kept":
			parts := strings.SplitN(admin.Get(ctx, key).Val(), ":", 3)
			if len(parts) == 3 { // or else it has drained
				since := must(strconv.ParseInt(parts[1], 10, 64))(t)
				admin.Set(ctx, key, parts[0]+":"+kind.Integer(since+by.Microseconds()).(string)+":"+parts[2], redis.KeepTTL)
			}
		case "fast":
			gone, slack, _ := strings.Cut(admin.Get(ctx, key).Val(), ":")
			n, err := strconv.ParseInt(gone, 10, 64)
			if err != nil {
				continue // drained
			}
			later := kind.Integer(n + int64(by/rule.Tick)).(string)
			if slack != "" {
				later += ":" + slack
			}
			admin.Set(ctx, key, later, redis.KeepTTL)
		}
	}
}
