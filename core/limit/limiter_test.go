package limit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

func TestOneScriptCallADecision(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	rdb, admin := srv.Admin(t), srv.Admin(t)
	prefix := srv.Prefix(t)
	for n := 1; n <= len(limit.OneOfEach); n++ {
		l := must(limit.New(storetest.At(t, rdb, prefix), fmt.Sprintf("n%d", n), limit.OneOfEach[:n], closed(patience)))(t)
		must(l.Take(t.Context(), "s"))(t) // tells the server the script
		redistest.ResetStats(t, admin)
		for range 20 { // granted and denied
			must(l.Take(t.Context(), "s"))(t)
		}
		must(l.Reset(t.Context(), "s"))(t)
		must(l.Peek(t.Context(), "s"))(t)
		stats := redistest.CommandStats(t, admin)
		if sha, eval := stats["evalsha"].Calls, stats["eval"].Calls; sha != 22 || eval > 1 {
			t.Errorf("%d policies: 22 calls: got %d EVALSHA and %d EVAL, want 22 and at most 1", n, sha, eval)
		}
	}
}

// TestAllOrNothing has each policy deny in turn, and checks every byte and expiry of the
// others in Redis.
func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for i, p := range limit.OneOfEach {
			if p.PolicyName() == "fast" { // which drains between two calls
				continue
			}
			denies, policies := limit.Set(p, int64(3), "Burst", "Limit"), slices.Clone(limit.OneOfEach)
			policies[i] = denies
			l := must(limit.New(storetest.At(t, rdb, prefix), fmt.Sprintf("all%d", i), policies, closed(patience)))(t)
			if d, err := l.TakeN(t.Context(), "s", 2); err != nil || !d.Allowed {
				t.Fatalf("policy %d: the first 2 permits: got %+v, %v, want them allowed", i, d, err)
			}
			before := redistest.Dump(t, admin, prefix)
			d, err := l.TakeN(t.Context(), "s", 2)
			if err != nil || d.Allowed || d.Policy != denies.PolicyName() {
				t.Fatalf("policy %d: the next 2 permits: got %+v, %v, want a denial by %s", i, d, err, denies.PolicyName())
			}
			if after := redistest.Dump(t, admin, prefix); !after.Is(before) {
				t.Errorf("after a denial by %s: got the keys\n%v\nwant them as before:\n%v", d.Policy, after, before)
			}
			if d, err := l.TakeN(t.Context(), "s", 0); err != nil || !d.Allowed {
				t.Errorf("a cost of 0 after a denial: got %+v, %v, want it allowed", d, err)
			}
			if d, err := l.Peek(t.Context(), "s"); err != nil || !d.Allowed {
				t.Errorf("a peek after a denial: got %+v, %v, want it allowed", d, err)
			}
			if after := redistest.Dump(t, admin, prefix); !after.Is(before) {
				t.Errorf("after a cost of 0 or a peek: got the keys\n%v\nwant them as before:\n%v", after, before)
			}
		}
	})
}

// TestStateHeals lengthens or removes the time to live of a used state. It then denies no
// longer than its policy can, and the key gets its time to live back.
func TestStateHeals(t *testing.T) {
	t.Parallel()
	policies := []limit.Policy{
		limit.TokenBucket{Rate: 50, Per: time.Second, Burst: 3},
		limit.TokenBucket{Rate: 37, Per: time.Second, Burst: 3}, // keeps a slack
		limit.TokenBucket{Rate: 5000, Per: time.Second, Burst: 300},
		limit.TokenBucket{Rate: 7777, Per: time.Second, Burst: 500},
		limit.FixedWindow{Limit: 3, Window: 60 * time.Millisecond},
		limit.SlidingWindow{Limit: 3, Window: 40 * time.Millisecond},
		limit.SlidingLog{Limit: 3, Window: 60 * time.Millisecond},
	}
	redistest.Each(t, func(t *testing.T, rdb, admin redis.UniversalClient, prefix string) {
		for _, p := range policies {
			for _, alone := range []bool{true, false} {
				set := []limit.Policy{p}
				if !alone {
					set = append(set, limit.FixedWindow{Name: "wide", Limit: 1e9, Window: time.Minute})
				}
				for _, used := range []int64{1, 0} { // one permit, or all of them
					for _, harm := range []string{"persist", "lengthen"} {
						t.Run(fmt.Sprintf("%s/alone=%v/used=%d/%s", p.PolicyName(), alone, used, harm), func(t *testing.T) {
							t.Parallel()
							heals(t, rdb, admin, prefix, set, used, harm)
						})
					}
				}
			}
		}
	}, redistest.OnStandalone, redistest.OnCluster) // on miniredis a key may expire within a script
}

func heals(t *testing.T, rdb, admin redis.UniversalClient, prefix string, policies []limit.Policy, used int64, harm string) {
	t.Helper()
	ctx := t.Context()
	name := strings.ReplaceAll(strings.TrimPrefix(redistest.Prefix(t), "neap:"), "-", "")
	l := must(limit.New(storetest.At(t, rdb, prefix), name, policies, closed(patience)))(t)
	unused := first(must(l.Peek(ctx, "nobody"))(t))
	all, window := unused.Limit, unused.Window
	if used == 0 {
		used = all
	}
	harmed := &harming{client: admin, harm: harm}
	harms := must(limit.New(storetest.At(t, harmed, prefix), name, policies, closed(5*time.Second)))(t)
	redistest.Await(t, 20*time.Second, "the state to be harmed", func() bool {
		d, err := harms.TakeN(ctx, "s", used)
		return err == nil && d.Allowed && harmed.all
	})
	// No call may report a longer wait than the policy can have, whether it is denied
	// or not.
	began := time.Now()
	longest := 2*window + 20*time.Millisecond
	redistest.Await(t, longest+10*time.Second, "everything is granted again", func() bool {
		d := must(l.TakeN(ctx, "s", all))(t)
		if d.RetryAfter > longest {
			t.Fatalf("got RetryAfter %v, want at most %v of a policy with the window %v",
				d.RetryAfter, longest, window)
		}
		for _, key := range redistest.KeysOf(t, admin, prefix+":limit:"+name) {
			if ttl := admin.PTTL(ctx, key).Val(); ttl == -1 || ttl > time.Hour {
				t.Fatalf("%s: after a request that is granted %t: got a time to live of %v, want at most an hour", key, d.Allowed, ttl)
			}
		}
		return d.Allowed
	})
	if took := time.Since(began); took > longest+5*time.Second {
		t.Errorf("got denials for %v, want at most %v", took, longest+5*time.Second)
	}
}

// harming lengthens or removes the time to live of a script's keys, in the transaction
// that runs the script, so that none of them expires before.
type harming struct {
	client redis.UniversalClient
	harm   string
	all    bool // keys of the last script were harmed
}

func (h *harming) Process(ctx context.Context, cmd redis.Cmder) error {
	words := redistest.Write(cmd)
	keys, err := strconv.Atoi(fmt.Sprint(words[2]))
	if err != nil {
		return err
	}
	tx := h.client.TxPipeline()
	_ = tx.Process(ctx, cmd)
	var results []*redis.BoolCmd
	for _, key := range words[3 : 3+keys] {
		if h.harm == "persist" {
			results = append(results, tx.Persist(ctx, key.(string)))
		} else {
			results = append(results, tx.PExpire(ctx, key.(string), 24*time.Hour))
		}
	}
	_, _ = tx.Exec(ctx) // which is each command's own error too
	h.all = !slices.ContainsFunc(results, func(r *redis.BoolCmd) bool { return !r.Val() })
	return cmd.Err()
}

func TestResetForgetsOneSubject(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb, _ redis.UniversalClient, prefix string) {
		for n := 1; n <= len(limit.OneOfEach); n++ {
			resets(t, must(limit.New(storetest.At(t, rdb, prefix), fmt.Sprintf("reset%d", n), limit.OneOfEach[:n], closed(patience)))(t))
		}
	})
}

func resets(t *testing.T, l *limit.Limiter) {
	t.Helper()
	for _, subject := range []string{"a", "b"} {
		take(t, l, subject, 5)
	}
	must(l.Reset(t.Context(), "a"))(t)
	for subject, want := range map[string]bool{"a": true, "b": false} {
		if d, err := l.TakeN(t.Context(), subject, 5); err != nil || d.Allowed != want {
			t.Errorf("a take of 5 permits by %s after a's reset: got %+v, %v, want allowed %t", subject, d, err, want)
		}
	}
}

func TestWithSharesWhatIsTheSame(t *testing.T) {
	t.Parallel()
	shared := limit.FixedWindow{Name: "all", Limit: 3, Window: time.Hour}
	_, rdb := redistest.Miniredis(t)
	for _, l := range []*limit.Limiter{
		must(limit.New(rdb, "with", []limit.Policy{shared}, closed(patience)))(t),
		must(limit.NewLocal("with", []limit.Policy{shared}, nil))(t),
	} {
		plan := must(l.With(shared, limit.FixedWindow{Name: "plan", Limit: 2, Window: time.Hour}))(t)
		for i, step := range []struct {
			l    *limit.Limiter
			want bool
		}{{plan, true}, {plan, true}, {plan, false}, {l, true}, {l, false}} {
			if d, err := step.l.Take(t.Context(), "s"); err != nil || d.Allowed != step.want {
				t.Errorf("step %d: got %+v, %v, want allowed %t", i, d, err, step.want)
			}
		}
		if _, err := l.With(); err == nil || !strings.Contains(err.Error(), "policies is empty") {
			t.Errorf("With no policies: got %v, want \"policies is empty\"", err)
		}
	}
}

func TestLocalDecidesByTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := must(limit.NewLocal("local", limit.OneOfEach[2:], nil))(t)
		for i := range 8 {
			d, err := l.Take(t.Context(), "s")
			if err != nil || d.Allowed != (i < 7) {
				t.Fatalf("take %d: got %+v, %v, want allowed %t", i, d, err, i < 7)
			}
			if !d.Allowed {
				time.Sleep(d.RetryAfter - time.Microsecond)
				if d, _ := l.Take(t.Context(), "s"); d.Allowed {
					t.Error("a take a microsecond before RetryAfter: got it allowed, want a denial")
				}
				time.Sleep(time.Microsecond)
				if d, _ := l.Take(t.Context(), "s"); !d.Allowed {
					t.Errorf("a take after RetryAfter: got %+v, want it allowed", d)
				}
			}
		}
		must(l.Reset(t.Context(), "s"))(t)
		resets(t, l)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Take(ended, "s"); !errors.Is(err, context.Canceled) {
			t.Errorf("a take with a canceled context: got %v, want context.Canceled", err)
		}
	})
}

func TestLocalForgetsTheLongestUnused(t *testing.T) {
	t.Parallel()
	l := must(limit.NewLocal("small", []limit.Policy{limit.FixedWindow{Limit: 1, Window: time.Hour}}, &limit.Options{MaxLocal: 2}))(t)
	for i, step := range []struct {
		subject string
		want    bool
	}{{"a", true}, {"b", true}, {"a", false}, {"c", true}, {"a", false}, {"b", true}} {
		if d, err := l.Take(t.Context(), step.subject); err != nil || d.Allowed != step.want {
			t.Errorf("step %d, a take by %s: got %+v, %v, want allowed %t", i, step.subject, d, err, step.want)
		}
	}
}

func TestSubjectAndCostAreChecked(t *testing.T) {
	t.Parallel()
	_, rdb := redistest.Miniredis(t)
	l := must(limit.New(rdb, "checked", limit.OneOfEach, nil))(t)
	if _, err := l.Take(t.Context(), ""); !errors.Is(err, limit.ErrSubject) {
		t.Errorf("a take without a subject: got %v, want ErrSubject", err)
	}
	if _, err := l.Reset(t.Context(), ""); !errors.Is(err, limit.ErrSubject) {
		t.Errorf("a reset without a subject: got %v, want ErrSubject", err)
	}
	for _, n := range []int64{-1, 6, 1 << 60} {
		_, err := l.TakeN(t.Context(), "s", n)
		var typed *limit.CostError
		if !errors.Is(err, limit.ErrCost) || !errors.As(err, &typed) || typed.Capacity != 5 || typed.Policy != "bucket" || typed.Cost != n {
			t.Errorf("a cost of %d: got %v, want a CostError with that cost, capacity 5 and policy bucket", n, err)
		}
	}
}

func TestAReplyThatIsNoDecisionIsAnError(t *testing.T) {
	t.Parallel()
	for _, reply := range []any{nil, "OK", []any{}, []any{int64(1), int64(2)}, []any{"1", "2"}, 1.5, slices.Repeat([]any{int64(1)}, 99)} {
		for n := range limit.OneOfEach {
			set := limit.OneOfEach[n : n+1]
			if n == 0 {
				set = limit.OneOfEach
			}
			l := must(limit.New(redistest.SameClient{Reply: reply}, "lying", set, closed(5*time.Second)))(t)
			if d, err := l.Take(t.Context(), "s"); !errors.Is(err, script.ErrMaybeExecuted) || d.Allowed {
				t.Errorf("the reply %T %v for %d policies: got %+v, %v, want ErrMaybeExecuted and nothing allowed",
					reply, reply, len(set), d, err)
			}
		}
	}
}

// TestWithoutPermissionNothingIsLeft denies PEXPIRE to the client. A log cannot be stored
// then, and neither the log nor a policy beside it is charged.
func TestWithoutPermissionNothingIsLeft(t *testing.T) {
	t.Parallel()
	srv := redistest.NewStandalone(t)
	admin := srv.Admin(t)
	user := redistest.NewUser(t, "~* +@all -pexpire", srv)
	rdb := srv.Client(t, func(o *redis.Options) { o.Username = user })
	sets := [][]limit.Policy{
		{limit.SlidingLog{Limit: 3, Window: time.Hour}},
		{limit.FixedWindow{Limit: 3, Window: time.Hour}, limit.SlidingLog{Limit: 3, Window: time.Hour}},
	}
	for i, policies := range sets {
		prefix := srv.Prefix(t)
		l := must(limit.New(storetest.At(t, rdb, prefix), "acl", policies, closed(patience)))(t)
		for _, cost := range []int64{1, 2} {
			if d, err := l.TakeN(t.Context(), "s", cost); err == nil {
				t.Errorf("set %d, a cost of %d without PEXPIRE: got %+v and no error, want one", i, cost, d)
			}
		}
		if keys := redistest.KeysOf(t, admin, prefix); len(keys) != 0 {
			t.Errorf("set %d: got the keys %q left, want none", i, keys)
		}
	}
}
