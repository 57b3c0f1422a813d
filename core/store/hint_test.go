package store_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/internal/background"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// TestAHintOfAClientWithoutDeadlines is given once, by the first lone call, if the client
// has the option.
func TestAHintOfAClientWithoutDeadlines(t *testing.T) { //nolint:paralleltest // it replaces slog.Default
	limits := func(mode store.QueueMode) func(*testing.T, *redis.Client) {
		return func(t *testing.T, rdb *redis.Client) {
			t.Helper()
			if _, by := took(t, aLimit(t, storetest.Open(t, rdb, store.Options{Prefix: "p", Queue: mode, FirstContact: 10 * time.Second}))); !by {
				t.Error("Redis did not decide, want it to")
			}
		}
	}
	answers := script.New("answers.lua", "return 1")
	runs := func(wrap func(*redis.Client) script.Client) func(*testing.T, *redis.Client) {
		return func(t *testing.T, rdb *redis.Client) {
			t.Helper()
			r, err := script.NewRunner(wrap(rdb), &script.Options{Budget: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Run(t.Context(), answers, []string{"k"}); err != nil {
				t.Error(err)
			}
		}
	}
	m := miniredis.RunT(t)
	for name, c := range map[string]struct {
		call func(*testing.T, *redis.Client)
		set  bool
		want int
	}{
		"a limit":                        {limits(store.Queued), false, 1},
		"a limit without the queue":      {limits(store.Direct), false, 1},
		"a limit, with it":               {limits(store.Queued), true, 0},
		"a script":                       {runs(func(rdb *redis.Client) script.Client { return rdb }), false, 1},
		"a script, with it":              {runs(func(rdb *redis.Client) script.Client { return rdb }), true, 0},
		"a script, on a type of its own": {runs(func(rdb *redis.Client) script.Client { return struct{ script.Client }{rdb} }), false, 0},
	} {
		background.Deadlines = background.Hint{}
		var text bytes.Buffer
		restore := redistest.DefaultLog(t, slog.NewTextHandler(&text, nil))
		rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: c.set})
		for range 3 {
			c.call(t, rdb)
		}
		restore()
		if n := strings.Count(text.String(), "ContextTimeoutEnabled"); n != c.want {
			t.Errorf("%s: got %q, want %d lines with the remedy", name, text.String(), c.want)
		}
		_ = rdb.Close()
	}
}
