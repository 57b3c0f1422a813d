package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/script/scripttest"
	"github.com/neap-go/neap/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.RunChild(map[string]func(words []string){"taker": func(words []string) {
		if err := serve(context.Background(), words[0], words[1] == "cluster", words[2], words[3]); err != nil {
			panic(err)
		}
	}})
	redistest.Main(m)
}

// first checks the first number of a reply.
func first(want int64) func(testing.TB, redis.UniversalClient, []string, any) {
	return func(tb testing.TB, _ redis.UniversalClient, _ []string, reply any) {
		tb.Helper()
		var got taken
		if err := next.Decode(reply, &got); err != nil || got.First != want || got.Now == 0 {
			tb.Errorf("got %+v, %v, want the first number %d", got, err, want)
		}
	}
}

func TestNextLua(t *testing.T) {
	t.Parallel()
	orders := []string{"orders"}
	scripttest.Run(t, next,
		scripttest.Call{Name: "one", Keys: orders, Args: []any{20261120, 0, 9_000_000_000, 1, most, 60_000}, Check: first(1)},
		scripttest.Call{Name: "ten", Keys: orders, Args: []any{20261120, 0, 9_000_000_000, 10, most, 60_000}, Check: first(2)},
		scripttest.Call{Name: "none", Keys: orders, Args: []any{20261120, 0, 9_000_000_000, 0, most, 60_000}, Fails: "fewer than one"},
	)
}

func TestNextLuaOnEachDay(t *testing.T) {
	t.Parallel()
	orders := []string{"orders"}
	scripttest.Run(t, next,
		scripttest.Call{Name: "first day", Keys: orders, Args: []any{20261120, 0, 9_000_000_000, 11, most, 60_000}, Check: first(1)},
		scripttest.Call{Name: "next day", Keys: orders, Args: []any{20261121, 0, 9_000_000_000, 1, most, 60_000}, Check: first(1)},
		scripttest.Call{Name: "day before", Keys: orders, Args: []any{20261120, 0, 9_000_000_000, 1, most, 60_000}, Check: first(2)},
		scripttest.Call{Name: "too many", Keys: orders, Args: []any{20261121, 0, 9_000_000_000, 2, 3, 60_000}, Check: first(0)},
		scripttest.Call{Name: "minus one", Keys: orders, Args: []any{20261121, 0, 9_000_000_000, -1, most, 60_000}, Fails: "fewer than one"},
		scripttest.Call{Name: "another time", Keys: orders, Args: []any{20261121, 0, 1, 1, most, 60_000}, Check: first(0)},
	)
}

func TestNextLuaKnowsItsRecord(t *testing.T) {
	t.Parallel()
	scripttest.Run(t, next, scripttest.Call{
		Keys: []string{"others"}, Args: []any{20261121, 0, 9_000_000_000, 1, most, 60_000}, Fails: "holds no order number",
		Prepare: func(tb testing.TB, rdb redis.UniversalClient, keys []string) {
			tb.Helper()
			if err := rdb.Set(tb.Context(), keys[0], "theirs", time.Minute).Err(); err != nil {
				tb.Fatal(err)
			}
		},
	})
}

// shop is a sequence on a server whose clock the test sets.
func shop(t *testing.T, zone string) (*miniredis.Miniredis, *Sequence) {
	t.Helper()
	m := miniredis.RunT(t)
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	s, err := New(rdb, "orders", location)
	if err != nil {
		t.Fatal(err)
	}
	if s.runner, err = script.NewRunner(rdb, &script.Options{Budget: time.Minute}); err != nil { // these tests are not about budgets
		t.Fatal(err)
	}
	return m, s
}

// TestTheDayIsTheServersAndTheShops has days begin where the shop is, at the
// server's time, although the process knows another time.
func TestTheDayIsTheServersAndTheShops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, at, want string }{
		{"Asia/Tokyo", "2030-05-01T14:59:59Z", "20300501-000001 20300501-000002"},
		{"Asia/Tokyo", "2030-05-01T15:00:00Z", "20300502-000001 20300502-000002"},
		{"America/Los_Angeles", "2030-05-01T06:59:59Z", "20300430-000001 20300430-000002"},
		{"Asia/Kathmandu", "2030-05-01T18:15:00Z", "20300502-000001 20300502-000002"},
		{"America/Sao_Paulo", "2018-11-04T03:00:00Z", "20181104-000001 20181104-000002"}, // that day has no midnight
		{"America/Sao_Paulo", "2018-11-04T02:59:59Z", "20181103-000001 20181103-000002"},
		{"America/Havana", "2030-11-03T04:30:00Z", "20301103-000001 20301103-000002"}, // that day has two
		{"America/Havana", "2030-11-03T05:30:00Z", "20301103-000001 20301103-000002"},
	} {
		m, s := shop(t, c.zone)
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		m.SetTime(at)
		if got := numbers(t, s.Next, 2); got != c.want {
			t.Errorf("%s at %s: %s, want %s", c.zone, c.at, got, c.want)
		}
	}
}

func numbers(t *testing.T, next func(context.Context) (Number, error), n int) string {
	t.Helper()
	all := make([]string, n)
	for i := range all {
		number, err := next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all[i] = number.String()
	}
	return strings.Join(all, " ")
}

// TestMidnight goes over it, back, and over it again: numbers only grow.
func TestMidnight(t *testing.T) {
	t.Parallel()
	m, s := shop(t, "Europe/Lisbon")
	b := &Blocks{Sequence: s, Size: 3, Lease: time.Hour}
	for _, step := range []struct{ at, single, block string }{
		{"2030-01-01T23:59:30Z", "20300101-000001 20300101-000002", "20300101-000003 20300101-000004"},
		{"2030-01-02T00:00:01Z", "20300102-000001 20300102-000002", ""},
		{"2030-01-01T23:59:59Z", "20300102-000003 20300102-000004", ""},
		{"2030-01-03T00:00:00Z", "20300103-000001 20300103-000002", "20300103-000003 20300103-000004"},
	} {
		at, _ := time.Parse(time.RFC3339, step.at)
		m.SetTime(at)
		if got := numbers(t, s.Next, 2); got != step.single {
			t.Errorf("at %s: %s, want %s", step.at, got, step.single)
		}
		b.left = min(b.left, int64(len(step.block))) // the process cannot hear that its server's clock was set
		if step.block != "" {
			if got := numbers(t, b.Next, 2); got != step.block {
				t.Errorf("at %s: in blocks %s, want %s", step.at, got, step.block)
			}
		}
	}
	if ttl := m.TTL("orders"); ttl <= 48*time.Hour {
		t.Errorf("the record has %v to live, want more than %v", ttl, 48*time.Hour)
	}
}

// TestADayEndsWithItsLastSecond asks in the second that it is not that day any more,
// and in the first that it is.
func TestADayEndsWithItsLastSecond(t *testing.T) {
	t.Parallel()
	m, s := shop(t, "UTC")
	at := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	m.SetTime(at)
	for _, c := range []struct{ from, till, day int64 }{{-60, 0, 0}, {0, 60, 20300101}, {1, 60, 0}} {
		var got taken
		reply, err := s.runner.Run(t.Context(), next, []string{"orders"}, 20300101, at.Unix()+c.from, at.Unix()+c.till, 1, most, 60_000)
		if err == nil {
			err = next.Decode(reply, &got)
		}
		if err != nil || got.Day != c.day {
			t.Errorf("from %d till %d: got %+v, %v, want the day %d", c.from, c.till, got, err, c.day)
		}
	}
}

// TestAClockThatIsAheadForgetsNothing has it be ahead for three days less an hour,
// and nobody take a number meanwhile.
func TestAClockThatIsAheadForgetsNothing(t *testing.T) {
	t.Parallel()
	m, s := shop(t, "UTC")
	m.SetTime(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC))
	one := numbers(t, s.Next, 1)
	m.FastForward(71 * time.Hour)
	m.SetTime(time.Date(2030, 1, 2, 12, 1, 0, 0, time.UTC))
	if got := one + " " + numbers(t, s.Next, 1); got != "20300102-000001 20300102-000002" {
		t.Errorf("got %s, want the numbers 1 and 2 of 20300102", got)
	}
}

func TestNewTakesAZone(t *testing.T) {
	t.Parallel()
	if _, err := New(redis.NewClient(&redis.Options{}), "orders", nil); err == nil {
		t.Error("New without a zone: got no error, want one")
	}
}

func TestTheDayIsFull(t *testing.T) {
	t.Parallel()
	m, s := shop(t, "UTC")
	at, _ := time.Parse(time.RFC3339, "2030-01-01T12:00:00Z")
	m.SetTime(at)
	if err := m.Set("orders", "20300101 999998"); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, s.Next, 1); got != "20300101-999999" {
		t.Errorf("got %s, want 20300101-999999", got)
	}
	if n, err := s.Next(t.Context()); !errors.Is(err, ErrFull) {
		t.Errorf("got %v, %v, want %v", n, err, ErrFull)
	}
}

// TestEightProcessesAndARestart kills the server while eight processes take
// numbers, and starts it again on what it kept.
func TestEightProcessesAndARestart(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--appendonly", "yes", "--appendfsync", "always")
	key := srv.Prefix(t) + ":{orders}"
	compete(t, func() { srv.Stop(t); srv.Start(t) }, "redis://"+srv.Addr(), "standalone", key)
	if ttl := srv.Admin(t).PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > keep {
		t.Errorf("the record has %v to live, want up to %v", ttl, keep)
	}
}

// TestEightProcessesOnACluster moves the slot of the record meanwhile.
func TestEightProcessesOnACluster(t *testing.T) {
	t.Parallel()
	many := redistest.NewCluster(t)
	key := many.Prefix(t) + ":{orders}"
	compete(t, func() { many.MoveSlot(t, key, func() {}) }, "redis://"+many.Nodes()[0].Addr(), "cluster", key)
}

// compete has eight processes take numbers, and something happen in the middle.
func compete(t *testing.T, happens func(), words ...string) {
	t.Helper()
	said := make(chan string)
	for range processes {
		c := redistest.StartChild(t, "taker", append(words, "Europe/Lisbon")...)
		go func() {
			for range 2 * each {
				line, err := c.Next()
				if err != nil {
					line = fmt.Sprint("ended: ", err)
				}
				said <- line
			}
		}()
	}
	all := make([]given, 0, 2*processes*each)
	for len(all) < cap(all) {
		g, err := parse(<-said)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, g); len(all) == processes*each/2 {
			happens()
		}
	}
	if err := judge(all); err != nil {
		t.Error(err)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	one := func(way string, asked, at, n int64) given { return given{way, asked, at, Number{20300101, n}} }
	second := int64(time.Second)
	for name, c := range map[string]struct {
		all  []given
		want string
	}{
		"good":           {[]given{one("single", 0, 9, 2), one("single", 5, 8, 1), one("single", 10, 11, 3)}, ""},
		"twice":          {[]given{one("single", 0, 1, 1), one("block", 5, 8, 1)}, "twice"},
		"smaller":        {[]given{one("single", 0, 1, 2), one("single", 5, 8, 1)}, "after 20300101-000002"},
		"block in lease": {[]given{one("single", 0, 1, 2), one("block", 5, 8, 1)}, ""},
		"block late":     {[]given{one("single", 0, 1, 2), one("block", second, second+1, 1)}, "after 20300101-000002"},
	} {
		err := judge(c.all)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want an error with %q, or none where that is empty", name, err, c.want)
		}
	}
}
