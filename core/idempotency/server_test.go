package idempotency_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/idempotency"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// TestFullServer uses a server without free memory. It begins no run. It still renews,
// concludes and resolves the runs that have begun.
func TestFullServer(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t, "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	const lease = 9 * time.Second // a call may take a third of it
	g := guardOf(t, srv.Client(t), prefix, idempotency.Reject{}, &idempotency.Options{Lease: lease})
	warm(t, g)
	claims := map[string]*idempotency.Claim{}
	for _, key := range []string{"completed", "without", "abandoned", "unknown", "renewed", "doubtful"} {
		claims[key] = begin(t, g, key, "")
	}
	if err := claims["doubtful"].Conclude(t.Context(), idempotency.Unknown()); err != nil {
		t.Fatal(err)
	}
	if err := begin(t, g, "done", "").Conclude(t.Context(), idempotency.DoneWith([]byte("result"))); err != nil {
		t.Fatal(err)
	}
	memory := func(most string) {
		t.Helper()
		if err := admin.ConfigSet(t.Context(), "maxmemory", most).Err(); err != nil {
			t.Fatal(err)
		}
	}
	memory("1")
	full := time.Now()
	for range 2 {
		if run, err := g.Begin(t.Context(), "fresh", ""); run.Claim != nil || !errors.Is(err, script.ErrNotExecuted) {
			t.Errorf("Begin: got a claim %t, %v, want none, and %v", run.Claim != nil, err, script.ErrNotExecuted)
		}
	}
	if r, err := g.Inspect(t.Context(), "fresh"); err != nil || r != (idempotency.Record{}) {
		t.Errorf("got %+v, %v, want no record", r, err)
	}
	replayed(t, g, "done", "", "result")
	refused(t, g, "completed", "", idempotency.ErrInFlight)
	refused(t, g, "doubtful", "", idempotency.ErrInDoubt)
	for key, end := range map[string]func(c *idempotency.Claim) error{
		"completed": func(c *idempotency.Claim) error {
			return c.Conclude(t.Context(), idempotency.DoneWith(make([]byte, 4096)))
		},
		"without":   func(c *idempotency.Claim) error { return c.Conclude(t.Context(), idempotency.DoneWithout()) },
		"abandoned": func(c *idempotency.Claim) error { return c.Conclude(t.Context(), idempotency.NothingDone()) },
		"unknown":   func(c *idempotency.Claim) error { return c.Conclude(t.Context(), idempotency.Unknown()) },
		"renewed":   func(c *idempotency.Claim) error { return c.Renew(t.Context()) },
		"doubtful": func(*idempotency.Claim) error {
			return g.Resolve(t.Context(), "doubtful", idempotency.DoneWith([]byte("found")))
		},
	} {
		if err := end(claims[key]); err != nil {
			t.Errorf("%s: got %v, want no error", key, err)
		}
	}
	replayed(t, g, "completed", "", string(make([]byte, 4096)))
	replayed(t, g, "doubtful", "", "found")
	refused(t, g, "without", "", idempotency.ErrNoResult)
	refused(t, g, "unknown", "", idempotency.ErrInDoubt)
	if run, err := g.Begin(t.Context(), "abandoned", ""); run.Claim != nil || !errors.Is(err, script.ErrNotExecuted) {
		t.Errorf("Begin of what was given up: got a claim %t, %v, want none, and %v",
			run.Claim != nil, err, script.ErrNotExecuted)
	}
	redistest.Await(t, soon, "longer than a lease", func() bool { return time.Since(full) > lease*5/4 })
	if err := claims["renewed"].Err(); err != nil {
		t.Errorf("the claim that was renewed has the error %v, want none", err)
	}
	if had, err := g.Forget(t.Context(), "done"); !had || err != nil {
		t.Errorf("Forget: got %t, %v, want true and no error", had, err)
	}
	memory("1gb")
	if c := begin(t, g, "fresh", ""); c.Attempt() != 1 || c.Conclude(t.Context(), idempotency.DoneWith(nil)) != nil {
		t.Errorf("with memory: got attempt %d, want 1 and no error of Conclude", c.Attempt())
	}
	if s := g.Stats(); s.Unconfirmed != 0 || s.Undoing != 0 || s.Concluding != 0 {
		t.Errorf("got stats %+v, want none unconfirmed, undoing or concluding", s)
	}
}

// TestARecordMovesWithItsSlot: a record is renewed, refused, completed and replayed while
// its slot moves to another master.
func TestARecordMovesWithItsSlot(t *testing.T) {
	t.Parallel()
	many := redistest.NewCluster(t)
	prefix := many.Prefix(t)
	g, other := guard(t, many.Client(t), prefix, nil), guard(t, many.Client(t), prefix, nil)
	warm(t, g, other)
	c := begin(t, g, "key", "")
	step := 0
	many.MoveSlot(t, nameOf(prefix, "key"), func() {
		step++
		if err := c.Renew(t.Context()); err != nil {
			t.Errorf("Renew, step %d: got %v, want no error", step, err)
		}
		refused(t, other, "key", "", idempotency.ErrInFlight)
		if step == 2 {
			if err := c.Conclude(t.Context(), idempotency.DoneWith([]byte("result"))); err != nil {
				t.Error(err)
			}
			replayed(t, other, "key", "", "result")
		}
	})
	replayed(t, g, "key", "", "result")

	prefix = redistest.Prefix(t) // other keys share its slot
	g, other = guard(t, many.Client(t), prefix, nil), guard(t, many.Client(t), prefix, nil)
	many.HalfMoveSlot(t, nameOf(prefix, "fresh"))
	c = begin(t, g, "fresh", "")
	refused(t, other, "fresh", "", idempotency.ErrInFlight)
	if err := c.Conclude(t.Context(), idempotency.DoneWith([]byte("moved"))); err != nil {
		t.Error(err)
	}
	replayed(t, other, "fresh", "", "moved")
}

// TestARecordWithoutATTLIsHealed by the next caller, and by its owner.
func TestARecordWithoutATTLIsHealed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		ctx := t.Context()
		g := guardOf(t, rdb, prefix, idempotency.Reject{}, nil)
		made := func(key string, how idempotency.Outcome) {
			t.Helper()
			if err := begin(t, g, key, "").Conclude(ctx, how); err != nil {
				t.Fatal(err)
			}
		}
		made("done", idempotency.DoneWith(nil))
		made("gone", idempotency.DoneWithout())
		made("doubt", idempotency.Unknown())
		made("free", idempotency.NothingDone())
		begin(t, g, "pending", "")
		renewed, completed, abandoned := begin(t, g, "renewed", ""), begin(t, g, "completed", ""), begin(t, g, "abandoned", "")
		dead(t, admin, prefix, "dead")
		asks := func(key, print string) func() error {
			return func() error { _, err := g.Begin(ctx, key, print); return err }
		}
		for key, c := range map[string]struct {
			call func() error
			want error
		}{
			"done":      {asks("done", ""), nil},
			"gone":      {asks("gone", ""), idempotency.ErrNoResult},
			"doubt":     {asks("doubt", ""), idempotency.ErrInDoubt},
			"free":      {asks("free", ""), nil},
			"pending":   {asks("pending", ""), idempotency.ErrInFlight},
			"dead":      {asks("dead", ""), idempotency.ErrInDoubt},
			"renewed":   {func() error { return renewed.Renew(ctx) }, nil},
			"completed": {func() error { return completed.Conclude(ctx, idempotency.DoneWith(nil)) }, nil},
			"abandoned": {func() error { return abandoned.Conclude(ctx, idempotency.NothingDone()) }, nil},
		} {
			name := nameOf(prefix, key)
			if err := admin.Persist(ctx, name).Err(); err != nil {
				t.Fatal(err)
			}
			if r, err := g.Inspect(ctx, key); err != nil || r.Expires >= 0 {
				t.Errorf("%s: got %+v, %v, want a record without an end", key, r, err)
			}
			if err := c.call(); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", key, err, c.want)
			}
			if left := admin.PTTL(ctx, name).Val(); left <= 0 || left > defaultDoubtRetention {
				t.Errorf("%s: got %v to live, want up to %v", key, left, defaultDoubtRetention)
			}
		}
	})
}

// TestEachCommandMadeToFail makes each command of each script fail in turn, in every
// state of a record. The reply is then an error, and no record is left without a TTL. No
// run has begun if an error said that it has not.
func TestEachCommandMadeToFail(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	key := nameOf(prefix, "key")
	soonest, past := time.Now().Add(time.Hour).UnixMilli(), time.Now().Add(-time.Hour).UnixMilli()
	records := map[string]string{
		"fresh":                      "",
		"free":                       "free 7 1 0 0 other print\n",
		"its own, free":              "free 7 1 0 0 me print\n",
		"another's":                  fmt.Sprintf("pending 7 1 %d 7200000 other print\n", soonest),
		"another's, dead":            fmt.Sprintf("pending 7 1 %d 1000 other print\n", past),
		"another's, from the future": fmt.Sprintf("pending 7 1 %d 1000 other print\n", soonest),
		"asked about":                fmt.Sprintf("asking 7 1 %d 7200000 other print\n", soonest),
		"its own":                    fmt.Sprintf("pending 7 1 %d 7200000 me print\n", soonest),
		"its own, dead":              fmt.Sprintf("pending 7 1 %d 1000 me print\n", past),
		"its own, asked about":       fmt.Sprintf("asking 7 1 %d 7200000 me print\n", soonest),
		"done":                       "done 7 1 0 0 me print\npresult",
		"another's, done":            "done 7 1 0 0 other print\npresult",
		"gone":                       "gone 7 1 0 0 me print\n",
		"in doubt":                   "doubt 7 1 0 0 me print\n",
		"another's, in doubt":        "doubt 7 1 0 0 other print\n",
	}
	const keep, terms = 86_400_000, "30000 86400000 "
	seen := map[string]bool{}
	for _, c := range []struct {
		file string
		args []any
	}{
		{"guard_begin.lua", []any{"me", "print", terms + "retry"}},
		{"guard_begin.lua", []any{"me", "print", terms + "reject"}},
		{"guard_begin.lua", []any{"me", "print", terms + "reconcile"}},
		{"guard_begin.lua", []any{"me", "another", terms + "retry"}},
		{"guard_renew.lua", []any{"me", 30_000, keep}},
		{"guard_complete.lua", []any{"me", "done", keep, 7, 1, "print", "presult"}},
		{"guard_complete.lua", []any{"me", "gone", keep, 7, 1, "print", ""}},
		{"guard_abandon.lua", []any{"me", "free", keep, keep}},
		{"guard_abandon.lua", []any{"me", "doubt", keep, keep}},
		{"guard_abandon.lua", []any{"me", "undo", keep, keep}},
		{"guard_resolve.lua", []any{"token", "done", keep, "presult"}},
		{"guard_forget.lua", nil},
		{"guard_inspect.lua", nil},
	} {
		seen[c.file] = true
		for name, record := range records {
			for _, lives := range []time.Duration{time.Hour, 0} {
				admin.Del(t.Context(), key)
				if record != "" {
					admin.Set(t.Context(), key, record, lives)
				}
				where := fmt.Sprint(c.file, c.args, ", ", name, ", ", lives)
				check := func(n int) {
					if after := admin.Get(t.Context(), key).Val(); after != record {
						t.Errorf("%s: command %d failed and left %q, want %q", where, n, after, record)
					}
				}
				attempt := redistest.Attempt{Source: script.FromFS(lua.FS, c.file).Source(), Keys: []string{key}, Args: c.args}
				redistest.FailEach(t, admin, attempt, redistest.Save(t, admin, attempt.Keys), where, check)
			}
		}
	}
	admin.Del(t.Context(), key)
	redistest.AllFailed(t, seen, "guard_")
}
