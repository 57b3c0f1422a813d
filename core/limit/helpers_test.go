package limit_test

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/limit"
	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/store"
	"github.com/neap-go/neap/internal/redistest"
	"github.com/neap-go/neap/lua"
)

// closed returns options with which Redis alone decides, within the budget.
// patience is the budget of a test that is not about budgets: a machine that is busy with
// other tests stands still for seconds.
const patience = time.Minute

func closed(budget time.Duration) *limit.Options {
	return &limit.Options{Budget: budget, Fail: store.FailClosed}
}

func take(t *testing.T, l *limit.Limiter, subject string, cost int64) limit.Decision {
	t.Helper()
	d, err := l.TakeN(t.Context(), subject, cost)
	if err != nil || !d.Allowed {
		t.Fatalf("a take of %d permits by %s: got %+v, %v, want them allowed", cost, subject, d, err)
	}
	return d
}

func newTestLocal(t testing.TB, opts *limit.Options, policies ...limit.Policy) *limit.Limiter {
	t.Helper()
	return must(limit.NewLocal("test", policies, opts))(t)
}

func second[T any](_ T, err error) error { return err }

// setsOf returns each of the policies alone, and all together.
func setsOf(policies []limit.Policy) [][]limit.Policy {
	return append([][]limit.Policy{policies}, each(policies)...)
}

// mostOf returns the highest cost that every policy of a limiter can grant.
func mostOf(t testing.TB, l *limit.Limiter) int64 {
	t.Helper()
	d := must(l.Peek(t.Context(), "nobody"))(t)
	most := int64(1 << 53)
	for s := range d.States() {
		most = min(most, s.Limit)
	}
	return most
}

func each(policies []limit.Policy) [][]limit.Policy { return slices.Collect(slices.Chunk(policies, 1)) }

// tried asks once; the decision may be a denial.
func tried(t *testing.T, l *limit.Limiter, cost int64) limit.Decision {
	t.Helper()
	d, err := l.TakeN(t.Context(), "s", cost)
	if err != nil {
		t.Fatalf("a take of %d permits: got %v, want a decision", cost, err)
	}
	return d
}

// slow are limits of 100 that free nothing by themselves while a test runs.
var slow = func() (all []limit.Policy) {
	for _, p := range limit.Steady {
		all = append(all, limit.Set(p, int64(100), "Burst", "Limit"))
	}
	return all
}()

func together(n int, do func(int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// inBubble returns a limiter on a miniredis that shares the clock of the bubble.
func inBubble(t *testing.T, m *miniredis.Miniredis, name string, policies ...limit.Policy) *limit.Limiter {
	t.Helper()
	return must(limit.New(redistest.BubbleClient(t, m), name, policies, &limit.Options{Fail: store.FailClosed}))(t)
}

type redisError string

func (e redisError) Error() string { return string(e) }

func (redisError) RedisError() {}

var modes = []store.FailMode{store.FailLocal, store.FailOpen, store.FailClosed}

// refused is an address at which no server listens.
func refused(t *testing.T) string {
	t.Helper()
	fd := must(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))(t)
	t.Cleanup(func() { syscall.Close(fd) }) // until then no server of another test gets the port
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(must(syscall.Getsockname(fd))(t).(*syscall.SockaddrInet4).Port))
}

// short are bans of 5 to 20 s for three denials in 10 s.
var short = limit.Ban{After: 3, Within: 10 * time.Second, For: 5 * time.Second, Max: 20 * time.Second}

// must returns what a call returned, and ends the test if the call failed: l :=
// must(New(…))(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// describe tells everything that users see of a decision.
func describe(d limit.Decision) string {
	return viewOf(d).String() + fmt.Sprintf("\ndegraded %t: %v", d.Degraded, d.Cause)
}

// first is what a decision says of its first policy.
func first(d limit.Decision) limit.State { return viewOf(d).States[0] }

// drain concludes what a limiter on that client still owes.
func drain(t *testing.T, rdb script.Client) {
	t.Helper()
	must(0, must(store.Of(rdb))(t).Drain(t.Context()))(t)
}

// runs reports whether a command runs a joined script whose name begins so.
func runs(cmd redis.Cmder, begins string) bool {
	text := cmd.String()
	return slices.ContainsFunc(lua.Made(), func(j lua.Joined) bool {
		if !strings.HasPrefix(j.Name, begins) {
			return false
		}
		sha, is := shas.Load(j.Name)
		if !is {
			sha, _ = shas.LoadOrStore(j.Name, script.New(j.Name, j.Text).SHA())
		}
		return strings.Contains(text, sha.(string))
	})
}

var shas sync.Map // of joined scripts, by their names

// shaOf is how Redis knows a script.
func shaOf(name string) string { return script.FromFS(lua.FS, name).SHA() }
