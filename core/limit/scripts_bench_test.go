package limit

import (
	"fmt"
	"testing"
	"time"

	"github.com/neap-go/neap/internal/redistest"
)

// BenchmarkScripts reports what the script of each policy costs a server, as a multiple of `return 1`: the
// bars are 3.3 for a window, 3.8 for a bucket and 5.5 for one on TIME, and 1.3 times that on 100,000 keys.
func BenchmarkScripts(b *testing.B) {
	srv := redistest.NewStandalone(b)
	rdb := srv.Admin(b)
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
		{"sliding", SlidingWindow{Limit: 1e4, Window: time.Hour}},
		{"log", SlidingLog{Limit: 1000, Window: time.Millisecond}},
	} {
		l := must(New(rdb, "cost", []Policy{c.policy}, nil))(b)
		sha := rdb.ScriptLoad(b.Context(), l.remote.script.Source()).Val()
		for _, keys := range []int{1000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, keys), func(b *testing.B) {
				all := make([][]any, keys)
				for i := range all {
					key := l.remote.keys(l, fmt.Sprint("user", i*7919%keys), nil)[0]
					all[i] = append([]any{"evalsha", sha, "1", key}, l.remote.args...)
				}
				pipe := rdb.Pipeline()
				for _, words := range all { // each has a state
					pipe.Do(b.Context(), words...)
				}
				must(pipe.Exec(b.Context()))(b)
				call := func(i int) [][]any { return all[i%keys : i%keys+1] }
				for range b.N {
					b.ReportMetric(redistest.ScriptCost(b, rdb, call), "×return1")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
