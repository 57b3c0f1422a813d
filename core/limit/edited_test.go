package limit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/internal/storetest"
)

// counters are the policies whose state is a count.
var counters = map[string]limit.Policy{
	"window":   limit.FixedWindow{Limit: 10, Window: time.Hour},
	"calendar": limit.CalendarWindow{Limit: 10, Every: limit.Month},
	"sliding":  limit.SlidingWindow{Limit: 10, Window: time.Hour},
}

// TestNoMoreIsGivenBackThanIsThere: somebody has set the count of a window to less than a decision
// took. What is given back leaves nothing, and never less than nothing.
func TestNoMoreIsGivenBackThanIsThere(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	for name, p := range counters {
		l := must(limit.New(storetest.At(t, srv.Client(t), prefix), name, []limit.Policy{p}, closed(time.Minute)))(t)
		d := must(l.TakeN(t.Context(), "s", 6))(t)
		key := redistest.KeysOf(t, admin, prefix+":limit:"+name)[0]
		must(admin.Do(t.Context(), "set", key, "1", "keepttl").Result())(t)
		if err := d.Refund(t.Context()); err != nil {
			t.Errorf("%s: a refund of 6 where 1 is used: got %v, want no error", name, err)
		}
		if d := must(l.Peek(t.Context(), "s"))(t); d.Remaining != 10 || admin.Exists(t.Context(), key).Val() != 0 {
			t.Errorf("%s: after it: got %+v and the key %q, want all 10 and no key", name, d, admin.Get(t.Context(), key).Val())
		}
	}
}

// losingOne is a client that loses the reply of the next settlement.
type losingOne struct {
	*redis.Client

	next atomic.Bool
}

func (l *losingOne) Process(ctx context.Context, cmd redis.Cmder) error {
	err := l.Client.Process(ctx, cmd)
	if err == nil && runs(cmd, "limit_settle(") && l.next.Swap(false) {
		err = io.EOF
		cmd.SetErr(err)
	}
	return err
}

// TestARepeatedSettlementTellsWhatWasForgiven: the reply of the first call was lost.
func TestARepeatedSettlementTellsWhatWasForgiven(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	rdb := &losingOne{Client: srv.Client(t)}
	l := must(limit.New(storetest.At(t, rdb, srv.Prefix(t)), "lost", []limit.Policy{limit.FixedWindow{Limit: 10, Window: time.Hour, MaxDebt: 2}}, closed(time.Minute)))(t)
	must(0, l.Warm(t.Context()))(t) // so that the settlement goes by its SHA
	d := must(l.TakeN(t.Context(), "s", 5))(t)
	rdb.next.Store(true)
	if s, err := d.Settle(t.Context(), 20); err != nil || s.Forgiven != 8 || rdb.next.Load() {
		t.Errorf("settled to 20 where 12 find room: got %d forgiven, %v, want 8, and that a reply was lost", s.Forgiven, err)
	}
}

// TestANumberThatNeapNeverWrites is an error of the decision, and stays as it is.
func TestANumberThatNeapNeverWrites(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	for name, p := range counters {
		for with, policies := range besideOthers(p) {
			l := must(limit.New(storetest.At(t, srv.Client(t), prefix), name+with, policies, closed(time.Minute)))(t)
			must(l.Take(t.Context(), "s"))(t)
			key := redistest.KeysOf(t, admin, prefix+":limit:"+name+with+":{s}:"+p.PolicyName())[0]
			for _, text := range []string{"9007199254740994", "1e2", "-1", "01", "1.0", " 1", "0x1", "inf", ""} {
				must(admin.Do(t.Context(), "set", key, text, "keepttl").Result())(t)
				if d, err := l.Take(t.Context(), "s"); !errors.Is(err, script.ErrFailed) {
					t.Errorf("%s, %s, a key with %q: got %+v, %v, want ErrFailed", name, with, text, d, err)
				}
				if got := admin.Get(t.Context(), key).Val(); got != text {
					t.Errorf("%s, %s, a key with %q: got %q afterwards, want it as it was", name, with, text, got)
				}
			}
		}
	}
}

// TestADebtThatIsTooLargeIsHealed by the next denial: the clock was ahead when it was written.
func TestADebtThatIsTooLargeIsHealed(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	for name, policies := range besideOthers(limit.TokenBucket{Rate: 5000, Per: time.Second, Burst: 5_000_000}) {
		l := must(limit.New(storetest.At(t, srv.Client(t), prefix), "healed"+name, policies, closed(time.Minute)))(t)
		must(l.TakeN(t.Context(), "s", 4_000_000))(t)
		key := redistest.KeysOf(t, admin, prefix+":limit:healed"+name+":{s}:"+policies[0].PolicyName())[0]
		gone := must(admin.Get(t.Context(), key).Int64())(t) // without a slack: a permit drains in a whole number of ticks
		must(admin.Do(t.Context(), "set", key, gone+time.Hour.Microseconds(), "keepttl").Result())(t)
		if d := must(l.Take(t.Context(), "s"))(t); d.Allowed || d.Remaining != 0 || d.ResetAfter > 1000*time.Second {
			t.Errorf("%s: a debt of more than an hour: got %+v, want a denial for as much debt as there can be, which drains in 1,000 s", name, d)
		}
		if left := must(admin.Get(t.Context(), key).Int64())(t) - redistest.Time(t, admin).UnixMicro(); left > (1000 * time.Second).Microseconds() {
			t.Errorf("%s: after the denial: got a debt that is gone in %d µs, want 1,000 s at most", name, left)
		}
	}
}

// TestALogAheadOfTheClock: the clock was ahead when its entries were written.
func TestALogAheadOfTheClock(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	for name, policies := range besideOthers(limit.SlidingLog{Limit: 2, Window: time.Minute}) {
		l := must(limit.New(storetest.At(t, srv.Client(t), prefix), "ahead"+name, policies, closed(time.Minute)))(t)
		must(l.TakeN(t.Context(), "s", 2))(t)
		key := redistest.KeysOf(t, admin, prefix+":limit:ahead"+name+":{s}:"+policies[0].PolicyName())[0]
		for place := range int64(2) {
			must(admin.LSet(t.Context(), key, place, redistest.Time(t, admin).Add(time.Hour).UnixMicro()).Result())(t)
		}
		for _, what := range []string{"Peek", "Take", "Peek"} {
			ask := map[string]func(context.Context, string) (limit.Decision, error){"Peek": l.Peek, "Take": l.Take}[what]
			if d := must(ask(t.Context(), "s"))(t); d.Allowed || d.RetryAfter > time.Minute {
				t.Errorf("%s, %s: got %+v, want a denial for a minute at most", name, what, d)
			}
			newest := must(admin.LIndex(t.Context(), key, -1).Int64())(t)
			if ahead := time.UnixMicro(newest).After(redistest.Time(t, admin)); what == "Take" && ahead {
				t.Errorf("%s: after a denial: got entries that lie ahead, want them as of now", name)
			}
		}
	}
}

// besideOthers returns a policy alone and in a set.
func besideOthers(p limit.Policy) map[string][]limit.Policy {
	return map[string][]limit.Policy{"alone": {p}, "set": {p, limit.TokenBucket{Name: "beside", Rate: 1e9, Per: time.Hour}}}
}

// TestABucketOnACoarserTick: with these numbers, microseconds would not be exact.
func TestABucketOnACoarserTick(t *testing.T) {
	t.Parallel()
	const burst = 50_000_000_000
	srv := redistest.Standalone(t)
	l := must(limit.New(storetest.At(t, srv.Client(t), srv.Prefix(t)), "coarse", []limit.Policy{limit.TokenBucket{Rate: 4_000_000_007, Per: time.Hour, Burst: burst}}, closed(time.Minute)))(t)
	if d := must(l.TakeN(t.Context(), "s", burst))(t); !d.Allowed {
		t.Fatalf("the burst: got %+v, want it granted", d)
	}
	d := must(l.TakeN(t.Context(), "s", burst/2))(t)
	if most := 7 * time.Hour; d.Allowed || d.Remaining > burst/2 || d.RetryAfter > most || d.RetryAfter < most-time.Hour {
		t.Errorf("half of the burst: got %+v, want a denial for more than 6 hours", d)
	}
}

// TestABucketThatDrainsForCenturies is exact on its tick, too: the tick at which it is empty is a
// number that scripts can tell.
func TestABucketThatDrainsForCenturies(t *testing.T) {
	t.Parallel()
	const burst = 8_000_000_000_000_000
	srv := redistest.Standalone(t)
	l, err := limit.New(storetest.At(t, srv.Client(t), srv.Prefix(t)), "centuries", []limit.Policy{limit.TokenBucket{Rate: 1_000_000, Per: time.Second, Burst: burst}}, closed(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	must(l.TakeN(t.Context(), "s", burst-1))(t)
	if d, err := l.Peek(t.Context(), "s"); err != nil || d.Remaining < 1 || d.Remaining > burst/1000 {
		t.Errorf("got %d left, %v, want those that were not taken", d.Remaining, err)
	}
}

// TestABanDoesNotReachFurtherThanItIsLong: the clock was ahead when it was written.
func TestABanDoesNotReachFurtherThanItIsLong(t *testing.T) {
	t.Parallel()
	srv := redistest.Standalone(t)
	admin, prefix := srv.Admin(t), srv.Prefix(t)
	l := must(limit.New(storetest.At(t, srv.Client(t), prefix), "bans", []limit.Policy{
		limit.WithBan(limit.FixedWindow{Limit: 1, Window: time.Second}, limit.Ban{After: 1, Within: time.Minute, For: time.Minute, Max: time.Hour}),
	}, closed(time.Minute)))(t)
	must(l.TakeN(t.Context(), "s", 1))(t)
	redistest.Await(t, time.Minute, "a ban", func() bool { // not if the window has ended between two takes
		d := must(l.Take(t.Context(), "s"))(t)
		return d.Banned()
	})
	var key string
	for _, one := range redistest.KeysOf(t, admin, prefix+":limit:bans") {
		if strings.Contains(one, "!ban-") {
			key = one
		}
	}
	end, rest, _ := strings.Cut(admin.Get(t.Context(), key).Val(), ":")
	later := must(strconv.ParseInt(end, 10, 64))(t) + 10*time.Minute.Milliseconds()
	must(admin.Do(t.Context(), "set", key, fmt.Sprintf("%d:%s", later, rest), "keepttl").Result())(t)
	for what, ask := range map[string]func(context.Context, string) (limit.Decision, error){"Peek": l.Peek, "Take": l.Take} {
		if d := must(ask(t.Context(), "s"))(t); !d.Banned() || d.RetryAfter > time.Minute {
			t.Errorf("%s: got banned %t for %v, want it for a minute at most", what, d.Banned(), d.RetryAfter)
		}
	}
}
