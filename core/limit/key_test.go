package limit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/internal/redistest"
)

func TestChangedNumbersStartAfresh(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for i, p := range []Policy{
			FixedWindow{Name: "p", Limit: 1, Window: time.Hour},
			FixedWindow{Name: "p", Limit: 2, Window: time.Hour},
			FixedWindow{Name: "p", Limit: 1, Window: time.Minute},
			SlidingLog{Name: "p", Limit: 1, Window: time.Minute},
			TokenBucket{Name: "p", Rate: 1, Per: time.Hour},
			FixedWindow{Name: "q", Limit: 1, Window: time.Hour},
		} {
			l, err := New(rdb, "roll", []Policy{p}, &Options{Prefix: prefix, Budget: 5 * time.Second, Fail: FailClosed})
			if err != nil {
				t.Fatal(err)
			}
			if d, err := l.Take(t.Context(), "s"); err != nil || !d.Allowed {
				t.Errorf("policy %d: %+v, %v", i, d, err)
			}
		}
		if keys := keysOf(t, admin, prefix); len(keys) != 6 || !strings.Contains(fmt.Sprint(keys), ":limit:roll:{s}:p!window-2-1h") {
			t.Errorf("the keys are %q", keys)
		}
	})
}

// TestALogIsSmall holds a log of 1,000 permits to 12 bytes each.
func TestALogIsSmall(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb, admin := srv.Client(t), srv.Admin(t)
	prefix := srv.Prefix(t)
	l, err := New(rdb, "log", []Policy{SlidingLog{Limit: 1000, Window: time.Hour}}, &Options{Prefix: prefix, Budget: 5 * time.Second, Fail: FailClosed})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if d, err := l.Take(t.Context(), "s"); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	key := keysOf(t, admin, prefix)[0]
	if size := admin.MemoryUsage(t.Context(), key, 0).Val(); size > 12*1000 {
		t.Errorf("a log of 1,000 permits takes %d bytes", size)
	}
}
