package limit_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestChangedNumbersStartAfresh(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for i, p := range []limit.Policy{
			limit.FixedWindow{Name: "p", Limit: 1, Window: time.Hour},
			limit.FixedWindow{Name: "p", Limit: 2, Window: time.Hour},
			limit.FixedWindow{Name: "p", Limit: 1, Window: time.Minute},
			limit.SlidingLog{Name: "p", Limit: 1, Window: time.Minute},
			limit.TokenBucket{Name: "p", Rate: 1, Per: time.Hour},
			limit.FixedWindow{Name: "q", Limit: 1, Window: time.Hour},
		} {
			l := must(limit.New(storetest.At(t, rdb, prefix), "roll", []limit.Policy{p}, closed(patience)))(t)
			if d, err := l.Take(t.Context(), "s"); err != nil || !d.Allowed {
				t.Errorf("the first take of policy %d: got %+v, %v, want it allowed", i, d, err)
			}
		}
		if keys := redistest.KeysOf(t, admin, prefix); len(keys) != 6 || !strings.Contains(fmt.Sprint(keys), ":limit:roll:{s}:p!window-2-1h") {
			t.Errorf("got the keys %q, want 6, one of them of p!window-2-1h", keys)
		}
	})
}

// TestALogIsSmall holds a log of 1,000 permits to 12 bytes each.
func TestALogIsSmall(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb, admin := srv.Client(t), srv.Admin(t)
	prefix := srv.Prefix(t)
	log := limit.SlidingLog{Limit: 1000, Window: time.Hour}
	l := must(limit.New(storetest.At(t, rdb, prefix), "log", []limit.Policy{log}, closed(patience)))(t)
	for range 1000 {
		if d, err := l.Take(t.Context(), "s"); err != nil || !d.Allowed {
			t.Fatalf("a take of 1,000 permits one by one: got %+v, %v, want it allowed", d, err)
		}
	}
	key := redistest.KeysOf(t, admin, prefix)[0]
	if size := admin.MemoryUsage(t.Context(), key, 0).Val(); size > 12*1000 {
		t.Errorf("a log of 1,000 permits: got %d bytes, want at most %d", size, 12*1000)
	}

	brief := limit.SlidingLog{Limit: 5, Window: 20 * time.Millisecond}
	for name, policies := range map[string][]limit.Policy{"alone": {brief}, "set": {brief, limit.FixedWindow{Limit: 1e6, Window: time.Hour}}} {
		l := must(limit.New(storetest.At(t, rdb, prefix), name, policies, closed(time.Minute)))(t)
		for range 20 {
			must(l.WaitFor(t.Context(), "s", 1, time.Minute))(t)
		}
		for _, key := range redistest.KeysOf(t, admin, prefix+":limit:"+name) {
			if n, err := admin.LLen(t.Context(), key).Result(); err == nil && n > 5 {
				t.Errorf("%s: a log of 5 permits after 20: got %d entries, want at most 5", name, n)
			}
		}
	}
}

// TestKeysAreAsSmallAsDocumented asks a real server for the size of one key of each
// policy, and of the keys of a ban and of a settled decision. The sizes must fit the
// table in docs/operations.md. The table is for Redis 7.0. With another version the least
// and the most may each be a quarter more.
func TestKeysAreAsSmallAsDocumented(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("../../docs/operations.md"))(t)
	admin := redistest.Standalone(t).Admin(t)
	other := int64(1) // 0 for the version of the table
	if strings.Contains(admin.Info(t.Context(), "server").Val(), "redis_version:7.0.") {
		other = 0
	}
	const prefix = "size" // as long as the default one
	for row, policies := range map[string][]limit.Policy{
		"token bucket": {
			limit.TokenBucket{Rate: 7, Per: time.Minute},
			limit.TokenBucket{Rate: 10, Per: time.Second, Burst: 20},
			limit.TokenBucket{Name: "burst", Rate: 5000, Per: time.Second, Burst: 100_000},
			limit.TokenBucket{Rate: 7777, Per: time.Second},
		},
		"fixed window": {
			limit.FixedWindow{Limit: 5, Window: time.Minute},
			limit.FixedWindow{Name: "daily", Limit: 10_000, Window: 24 * time.Hour},
		},
		"sliding window": {
			limit.SlidingWindow{Limit: 10, Window: time.Minute},
			limit.SlidingWindow{Limit: 10_000, Window: 24 * time.Hour},
		},
		"calendar window": {
			limit.CalendarWindow{Limit: 100, Every: limit.Day},
			limit.CalendarWindow{Name: "monthly", Limit: 10_000, Every: limit.Month, Location: must(time.LoadLocation("Asia/Shanghai"))(t)},
		},
		"token bucket with `KeepOnChange`": {
			limit.KeepOnChange(limit.TokenBucket{Name: "p", Rate: 10, Per: time.Second}),
			limit.KeepOnChange(limit.TokenBucket{Name: "plan", Rate: 10, Per: 24 * time.Hour, Burst: 1000}),
		},
		"ban": {
			limit.WithBan(limit.FixedWindow{Limit: 1, Window: time.Hour}, limit.Ban{After: 2, Within: time.Minute, For: time.Hour}),
			limit.WithBan(limit.FixedWindow{Name: "login", Limit: 1, Window: time.Hour}, limit.Ban{After: 1, Within: time.Minute, For: time.Hour}),
		},
		"marker of a settled or refunded decision": {limit.FixedWindow{Limit: 5, Window: time.Minute}},
		"estimate on a lease": {
			limit.WithLease(limit.FixedWindow{Limit: 5, Window: time.Minute}, time.Minute),
			limit.WithLease(limit.CalendarWindow{Name: "quota", Limit: 50_000_000, Every: limit.Month}, time.Minute),
		},
	} {
		documented := regexp.MustCompile(`\| ` + row + ` \| (\d+)–(\d+)(?: with one)? \|`).FindSubmatch(page)
		if documented == nil {
			t.Errorf("docs/operations.md: got no sizes for %s, want a row", row)
			continue
		}
		least, _ := strconv.ParseInt(string(documented[1]), 10, 64)
		most, _ := strconv.ParseInt(string(documented[2]), 10, 64)
		var sizes []int64
		for _, p := range policies {
			for _, subject := range []string{"ip=192.0.2.1", "ip=192.168.100.200"} {
				l := must(limit.New(storetest.At(t, admin, prefix), "api", []limit.Policy{p}, closed(patience)))(t)
				d := must(l.Take(t.Context(), subject))(t)
				actual := int64(1)
				if strings.HasPrefix(row, "marker") {
					actual = 0 // what changes nothing has no marker
				}
				must(d.Settle(t.Context(), actual))(t)
				for n, tries := len(sizes), 0; len(sizes) == n && tries < 100; tries++ { // a key may end before it is seen
					must(l.Take(t.Context(), subject))(t)
					for _, key := range redistest.KeysOf(t, admin, prefix) {
						if strings.Contains(key, "!ban-") == (row == "ban") && strings.Contains(key, ":settled:") == strings.HasPrefix(row, "marker") &&
							strings.HasSuffix(key, "!estimates") == strings.HasPrefix(row, "estimate") {
							sizes = append(sizes, admin.MemoryUsage(t.Context(), key, 0).Val())
						}
						admin.Del(t.Context(), key)
					}
				}
			}
		}
		if len(sizes) != 2*len(policies) || slices.Min(sizes) > least+other*least/4 || slices.Max(sizes) > most+other*most/4 {
			t.Errorf("the keys of a %s: got %d bytes, want the %d to %d of the table", row, sizes, least, most)
		}
	}
}
