package limit

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// BenchmarkScripts reports what the script of each policy costs a server, as a multiple
// of `return 1`, and what its commands cost by themselves.
func BenchmarkScripts(b *testing.B) {
	srv := redistest.NewStandalone(b)
	rdb := srv.Admin(b)
	measure := func(name, source string, keys int, words func(i int) (keys []string, args []any)) {
		sha := rdb.ScriptLoad(b.Context(), source).Val()
		b.Run(fmt.Sprintf("%s/%d", name, keys), func(b *testing.B) {
			all := make([][]any, keys)
			pipe := rdb.Pipeline()
			for i := range all {
				names, args := words(i * 7919 % keys)
				all[i] = []any{"evalsha", sha, strconv.Itoa(len(names))}
				for _, key := range names {
					all[i] = append(all[i], key)
				}
				all[i] = append(all[i], args...)
				pipe.Do(b.Context(), all[i]...) // each has a state
			}
			must(pipe.Exec(b.Context()))(b)
			call := func(i int) [][]any { return all[i%keys : i%keys+1] }
			for range b.N {
				b.ReportMetric(redistest.ScriptCost(b, rdb, call), "×return1")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
	for _, c := range []struct{ name, commands string }{
		{"commands of a window", "call('GET', key) call('PTTL', key) call('INCRBY', key, '1')"},
		{"commands of a bucket", "call('PTTL', key) call('SET', key, '0', 'PX', 3600000)"},
		{"commands of a fast bucket", "call('TIME') call('GET', key) call('SET', key, '0', 'PX', '3600000')"},
	} {
		measure(c.name, "local key, call = KEYS[1], redis.call "+c.commands+" return 1", 1000, func(i int) ([]string, []any) {
			return []string{fmt.Sprintf("neap:limit:cost:{user%d}:%s", i, strings.ReplaceAll(c.name, " ", "-"))}, []any{"1", "1000000000", "100", "3600000"} // as many as a policy has
		})
	}
	rare := Ban{After: 1e9, Within: time.Hour, For: time.Hour}
	for _, c := range []struct {
		name   string
		policy Policy
	}{
		{"bucket", TokenBucket{Rate: 100, Per: time.Second, Burst: 1e9}},
		{"bucket drain 3", TokenBucket{Rate: 3, Per: time.Second, Burst: 1e9}},
		{"bucket denied", TokenBucket{Rate: 1, Per: time.Hour}},
		{"fast", TokenBucket{Rate: 5000, Per: time.Second, Burst: 1e9}},
		{"fast drain 7777", TokenBucket{Rate: 7777, Per: time.Second, Burst: 1e9}},
		{"fast denied", TokenBucket{Rate: 1_000_000, Per: 100 * time.Second, Burst: 1}},
		{"window", FixedWindow{Limit: 1e9, Window: time.Hour}},
		{"window denied", FixedWindow{Limit: 1, Window: time.Hour}},
		{"calendar", CalendarWindow{Limit: 1e6, Every: Month}},
		{"calendar denied", CalendarWindow{Limit: 1, Every: Month}},
		{"sliding", SlidingWindow{Limit: 1e4, Window: time.Hour}},
		{"log", SlidingLog{Limit: 1000, Window: time.Millisecond}},
		{"bucket with a ban", WithBan(TokenBucket{Rate: 100, Per: time.Second, Burst: 1e9}, rare)},
		{"fast with a ban", WithBan(TokenBucket{Rate: 5000, Per: time.Second, Burst: 1e9}, rare)},
		{"window with a ban", WithBan(FixedWindow{Limit: 1e9, Window: time.Hour}, rare)},
		{"window denied and counted", WithBan(FixedWindow{Limit: 1, Window: time.Hour}, rare)},
		{"window banned", WithBan(FixedWindow{Limit: 1, Window: time.Hour}, Ban{After: 1, Within: time.Hour, For: time.Hour})},
		{"sliding with a ban", WithBan(SlidingWindow{Limit: 1e4, Window: time.Hour}, rare)},
		{"calendar with a ban", WithBan(CalendarWindow{Limit: 1e6, Every: Month}, rare)},
		{"log with a ban", WithBan(SlidingLog{Limit: 1000, Window: time.Millisecond}, rare)},
		{"window on a lease", WithLease(FixedWindow{Limit: 1e9, Window: time.Hour}, time.Minute)},
		{"window on a lease denied", WithLease(FixedWindow{Limit: 1, Window: time.Hour}, time.Minute)},
		{"window by take", Shadow(FixedWindow{Limit: 1e9, Window: time.Hour})},
		{"kept bucket", KeepOnChange(TokenBucket{Name: "kept", Rate: 100, Per: time.Second, Burst: 1e9})},
		{"kept bucket denied", KeepOnChange(TokenBucket{Name: "kept", Rate: 1, Per: time.Hour})},
		{"kept window", KeepOnChange(FixedWindow{Name: "kept", Limit: 1e9, Window: time.Hour})},
		{"kept window denied", KeepOnChange(FixedWindow{Name: "kept", Limit: 1, Window: time.Hour})},
		{"kept calendar", KeepOnChange(CalendarWindow{Name: "kept", Limit: 1e6, Every: Month})},
		{"kept sliding", KeepOnChange(SlidingWindow{Name: "kept", Limit: 1e4, Window: time.Hour})},
		{"kept log", KeepOnChange(SlidingLog{Name: "kept", Limit: 1000, Window: time.Millisecond})},
	} {
		l := must(New(rdb, "cost", []Policy{c.policy}, nil))(b)
		for _, keys := range []int{1000, 100_000} {
			measure(c.name, l.remote.Script.Source(), keys, func(i int) ([]string, []any) {
				return l.remote.Keys(fmt.Sprint("user", i)), l.remote.Args(1, "token")
			})
		}
	}
}

// BenchmarkSeeds measures how much more a decision of Redis costs with Instances: for a
// known subject, and for ever new ones.
func BenchmarkSeeds(b *testing.B) {
	for name, policies := range map[string][]Policy{
		"one policy":     {FixedWindow{Limit: 5, Window: time.Hour}},
		"three policies": {FixedWindow{Limit: 5, Window: time.Hour}, SlidingWindow{Limit: 5, Window: time.Hour}, TokenBucket{Rate: 1, Per: time.Hour}},
	} {
		l := must(New(redistest.SameClient{}, "seeds", policies, &Options{Instances: 2}))(b)
		subjects := make([]string, 1<<20)
		for i := range subjects {
			subjects[i] = fmt.Sprint("ip=192.0.2.", i)
		}
		for many, n := range map[string]int{"known": 1, "50,000 known": 50_000 / len(policies), "new": len(subjects)} {
			b.Run(name+"/"+many, func(b *testing.B) {
				g := newRequest("", 0, len(policies))
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					g.Subject = subjects[i%n]
					i++
					l.local.Note(l.set, &g.Request, 2)
				}
			})
		}
	}
}
